package fslock

import (
	"context"
	"path/filepath"
	"syscall"
	"time"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/fslock/internal/groupfiles"
	"github.com/multilock/go/multilock/fslock/internal/history"
	"github.com/multilock/go/multilock/fslock/internal/manifest"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// Options say where the locks live.
type Options struct {
	// Base is the shared directory; it must exist. "." if empty.
	Base string
	// Group is the lock group, a directory in Base, made when it is needed;
	// DefaultGroup if empty.
	Group string
	// LegacyPeers makes the protocol safe against hosts that run the Python
	// MultiLock in the same group: it takes a lock by making the directory and
	// fills it afterwards, so an empty directory is taken then, not free. All
	// contenders in the group must agree about it. Costs two more calls per
	// acquisition, and one per release.
	LegacyPeers bool
	// FS is the file system; the operating system's if nil.
	FS vfs.FS
	// User is recorded in the history with the locks that are broken, for people.
	User string
	// HistoryKeep is for how long the group's history is kept, DefaultHistoryKeep if 0, for
	// ever if negative. Who begins the file of a day removes older ones, whoever wrote them.
	HistoryKeep time.Duration
	// Trust says whom to believe in the base directory, beside root, this user, and the
	// group that the directory was given to.
	Trust shareddir.Trust
	// Warn, if not nil, gets warnings for the user that no call returns, in one line each.
	Warn func(text string)
	// Self is who the calling process is; found out if zero. For tests.
	Self process.Identity
	// Clock is this host's own, for tests.
	Clock boottime.Clock
}

// Source is the locks of one group in one base directory, and the results of
// the jobs that ran under them.
type Source struct {
	group  string
	queued string // if this is a queue: the group in which the lock is
	legacy bool
	self   process.Identity
	clock  boottime.Clock // of this host
	user   string
	warn   func(text string)

	*history.Journal
	*manifest.Manifest
	files     groupfiles.Files
	base      *shareddir.Base
	above     *shareddir.Dir // where the group's directory is, if that is not the base: see Queue
	makeAbove func() error   // makes that
	groupDir  *shareddir.Dir // BASE/GROUP
	results   *shareddir.Dir // BASE/.multilock/groups/GROUP/done
	fences    *shareddir.Dir // BASE/.multilock/groups/GROUP/fence
	notifier  notifier
	turns     source.Turns
}

// What a Source is beside that; more is said where it is implemented.
var (
	_ source.Ledger         = (*Source)(nil)
	_ source.Timekeeper     = (*Source)(nil)
	_ source.Sweeper        = (*Source)(nil)
	_ source.NameChecker    = (*Source)(nil)
	_ source.Retention      = (*Source)(nil)
	_ source.ManifestGrower = (*Source)(nil)
	_ source.Chunks         = (*Source)(nil)
	_ source.Examiner       = (*Source)(nil)
)

// Open prepares to use the locks of a group. It creates nothing: that is left to
// the first attempt at a lock, so that looking leaves no traces. The error is
// source.ErrInvalid if the base is no directory, if somebody may write to it who is not
// trusted, or if the group's name cannot be one.
func Open(opt Options) (*Source, error) {
	if opt.Base == "" {
		opt.Base = "."
	}
	if opt.Group == "" {
		opt.Group = DefaultGroup
	}
	if err := checkGroup(opt.Group); err != nil {
		return nil, err
	}
	if opt.HistoryKeep == 0 {
		opt.HistoryKeep = DefaultHistoryKeep
	}
	if opt.Self == (process.Identity{}) {
		self, err := process.Self()
		if err != nil {
			return nil, opError("find out who this process is", "", err)
		}
		opt.Self = self
	}
	base, err := shareddir.Open(shareddir.Options{Path: opt.Base, FS: opt.FS, Self: opt.Self, Trust: opt.Trust, Clock: opt.Clock})
	if err != nil {
		return nil, err
	}
	s := &Source{base: base, group: opt.Group, legacy: opt.LegacyPeers, self: opt.Self, clock: opt.Clock, user: opt.User, warn: opt.Warn}
	s.files = groupfiles.Files{Base: base, Group: opt.Group}
	s.Journal = history.New(s.files, opt.Self, opt.HistoryKeep)
	s.Manifest = manifest.New(s.files, emptyTree)
	s.turns.Prompt = base.Kind.Local
	s.groupDir = shareddir.NewDir(s.openGroup)
	s.results = shareddir.NewDir(func(open shareddir.Opener) (vfs.Dir, error) {
		return s.files.FindWith(open, groupfiles.Root, s.group, doneDir)
	})
	s.fences = shareddir.NewDir(func(open shareddir.Opener) (vfs.Dir, error) { return s.files.Make(fenceDir, open) })
	return s, nil
}

// Close frees the source's descriptors. Locks that were acquired through it stay
// held, and can still be renewed and released.
func (s *Source) Close() error {
	s.notifier.close()
	s.groupDir.Close()
	s.fences.Close()
	s.Journal.Close()
	s.results.Close()
	return s.base.Close()
}

// Now implements source.Timekeeper: the time of the file system's server.
func (s *Source) Now(context.Context) (time.Time, error) { return s.base.Now(source.ClockFresh) }

// Examine implements source.Examiner: it looks at the mount, tries out the filesystem's
// rules, compares the clocks, and lists what is not trusted. It writes in .multilock alone.
func (s *Source) Examine(context.Context) []source.Finding { return s.base.Examine(s.group) }

// Self is who the calling process is.
func (s *Source) Self() process.Identity { return s.self }

// Group is the name of the lock group.
func (s *Source) Group() string { return s.group }

// Base is the path of the base directory: of this user's own, where everybody may write
// to the one that was asked for.
func (s *Source) Base() string { return s.base.Path() }

// Notice is what the user should be told once, "" if there is nothing.
func (s *Source) Notice() string { return s.base.Notice }

// UnsaidOneHost is the type of the filesystem if no other host sees that, so that locks on it
// exclude no other host, until SaidOneHost was called for the base directory. It is "" in all
// other cases, and asks no file server.
func (s *Source) UnsaidOneHost() string { return s.base.UnsaidOneHost() }

// SaidOneHost notes in the base directory that a user was told of UnsaidOneHost.
func (s *Source) SaidOneHost() error { return s.base.SaidOneHost() }

// OneHost is the type of the filesystem if it is known that no other host sees it, else "".
func (s *Source) OneHost() string { return s.base.OneHost() }

// MarkShared writes the marker file of a base directory that hosts share; IsMarkedShared looks
// for it. A mount point on which nothing is mounted has none.
func (s *Source) MarkShared() error { return s.base.MarkShared() }

// IsMarkedShared says whether MarkShared was called for the base directory, by any host.
func (s *Source) IsMarkedShared() (bool, error) { return s.base.IsMarkedShared() }

// Names implements source.Source: the entries of the group's directory.
func (s *Source) Names(context.Context) ([]string, error) {
	group, err := s.groupDir.Present()
	if gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, s.groupError(err)
	}
	defer s.groupDir.Done(group)
	names, err := shareddir.Names(group.List, func(string) bool { return true })
	if gone(err) {
		s.groupDir.Drop(group)
		return nil, nil
	}
	if err != nil {
		return nil, opError("list the lock group", "", err)
	}
	return names, nil
}

// openGroup opens the lock group if there is one.
func (s *Source) openGroup(open shareddir.Opener) (dir vfs.Dir, err error) {
	err = s.inParent(func(parent vfs.Dir) error {
		dir, err = s.files.FindIn(parent, s.group, open)
		return err
	})
	return dir, err
}

// makeGroupDir makes the lock group's directory.
func (s *Source) makeGroupDir() error {
	mkdir := func() error {
		return s.inParent(func(parent vfs.Dir) error { return parent.Mkdir(s.group, shareddir.DirMode) })
	}
	err := mkdir()
	if s.makeAbove == nil || !is(err, syscall.ENOENT) {
		return err
	}
	if err := s.makeAbove(); err != nil {
		return err
	}
	return mkdir()
}

// removeGroupDir removes it, if it is empty.
func (s *Source) removeGroupDir() error {
	return s.inParent(func(parent vfs.Dir) error { return parent.Rmdir(s.group) })
}

// makeGroup is the lock group, made if it is absent. The error is gone if
// somebody removed it meanwhile, as a barrier does.
func (s *Source) makeGroup() (*shareddir.Handle, error) {
	group, err := s.groupDir.Use()
	if !is(err, syscall.ENOENT) {
		return group, err
	}
	if err := s.makeGroupDir(); err != nil && !is(err, syscall.EEXIST) {
		return nil, err
	}
	return s.groupDir.Use()
}

func (s *Source) groupError(err error) error {
	if is(err, syscall.ENOTDIR, syscall.ELOOP) {
		what, which := s.called()
		if s.above == nil {
			which = filepath.Join(s.base.Path(), which)
		}
		return &source.InvalidError{What: what, Got: which, Why: "is not a directory (nor may it be a symbolic link to one); choose another group, or move away what is there", Err: err}
	}
	return opError("open the lock group", "", err)
}

var _ source.Describer = (*Source)(nil)

// Promises implements source.Describer.
func (s *Source) Promises() []source.Promise {
	return []source.Promise{
		source.PromiseOfDeath(s.self),
		source.PromiseOfJobs("a second file in the lock's directory"),
		source.Keeps(source.TraitSafeSilence, "a holder stops believing in its lock after four fifths of its TTL without a confirmed sign of life; that somebody moved the lock, its group or its base it learns from a sign of life, at the latest the eighth"),
		s.promiseOfBreaks(),
		source.Keeps(source.TraitBreakByForce, "by its name, or by one acquisition's token; the holder learns it at its next sign of life"),
		source.Keeps(source.TraitNamedHolder, "host, process, user and command, in the lock's file"),
		source.Keeps(source.TraitPromptRelease, "its directory is empty then, and the next rename takes it"),
		source.Keeps(source.TraitFenceNumbers, "the length of a file that every draw appends to, given only while the lock is in its place; not across a crash of a server that exports async"),
		s.promiseOfClock(),
		source.Keeps(source.TraitQueue, "tickets that are locks of their own; who waits without one may overtake"),
		source.Keeps(source.TraitCheapBarrier, "the group's directory is empty exactly when nothing in it is held"),
		source.Keeps(source.TraitResults, "a file for each job, renamed into place by the lock's holder alone"),
		source.Keeps(source.TraitManifest, "a directory with the list, renamed into place by the first host"),
		source.Keeps(source.TraitHistory, "a file for each host and day; what cannot be written is not in it"),
	}
}

func (s *Source) promiseOfBreaks() source.Promise {
	why := "when its process is gone, or after its TTL in silence by the server's clock and a while of watching"
	if s.base.Kind.ManyClocks {
		why = "when its process is gone, or after its whole TTL without a sign of life while somebody watched: no clock is believed here"
	}
	return source.Keeps(source.TraitBreakByEvidence, why)
}

func (s *Source) promiseOfClock() source.Promise {
	if s.base.Kind.ManyClocks {
		return source.Lacks(source.TraitOneClock, "hosts may date what they write here, each by its own clock: keep them in step (NTP) for --every and for ages that are told")
	}
	return source.Keeps(source.TraitOneClock, "the file server's, read from a directory that was made just now")
}

// refusal classifies what a file system can answer to the rename, and to the
// calls before it.
func is(err error, numbers ...syscall.Errno) bool { return vfs.Is(err, numbers...) }

// gone says that an entry does not exist, or that the directory it was looked
// for in does not exist any more.
func gone(err error) bool { return vfs.Gone(err) }

// ignoreGone is nil for what exists no longer, where that is what was wanted.
func ignoreGone(err error) error {
	if gone(err) {
		return nil
	}
	return err
}

// notEmpty says that a directory is in the way of a rename or of an rmdir.
func notEmpty(err error) bool { return vfs.NotEmpty(err) }

// forbidden may mean permissions, or, from some servers, "busy" or "exists".
func forbidden(err error) bool { return is(err, syscall.EPERM, syscall.EACCES, syscall.EBUSY) }

// inDoubt says that a call may have been carried out, or may be later on: its
// reply is lost or did not come in time.
func inDoubt(err error) bool { return vfs.InDoubt(err) }

// opError names the step in which err came up, what to do about it, and whether to wait.
func opError(op, name string, err error) error { return shareddir.OpError(op, name, err) }
