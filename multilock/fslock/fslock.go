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

// Options configure Open.
type Options struct {
	// Base is the shared directory, which must exist. The default is ".".
	Base string
	// Group is the lock group: a directory in Base, which is made when it is needed. The default is
	// DefaultGroup.
	Group string
	// LegacyPeers makes the protocol safe beside hosts that run the Python MultiLock of 2012 in the same
	// group. The Python MultiLock makes the directory first and fills it later, so an empty directory
	// counts as held. All contenders of a group must agree on this option. It costs two more calls for each
	// acquisition, and one for each release.
	LegacyPeers bool
	// FS is the filesystem. The default is the operating system's.
	FS vfs.FS
	// User is recorded in the history when a lock is broken, for people.
	User string
	// HistoryKeep is how long the group's history is kept. The default is DefaultHistoryKeep; a negative
	// value means for ever. The process that begins a day's file removes the files that are too old.
	HistoryKeep time.Duration
	// Trust names users whose files in the base directory are trusted. Files of root, of this user, and
	// of the directory's group are trusted in any case.
	Trust shareddir.Trust
	// Warn receives warnings for the user, one line each. It may be nil.
	Warn func(text string)
	// Self is the identity of the calling process, for tests. The default is the real one.
	Self process.Identity
	// Clock is this host's clock, for tests.
	Clock boottime.Clock
}

// Source has the locks of one group in one base directory, and the results of the jobs that ran under them.
type Source struct {
	group  string
	queued string // for a queue: the group that the lock is in
	legacy bool
	self   process.Identity
	clock  boottime.Clock // of this host
	user   string
	warn   func(text string)

	*history.Journal
	*manifest.Manifest
	files     groupfiles.Files
	base      *shareddir.Base
	above     *shareddir.Dir // the parent of the group's directory, if that is not the base: see Queue
	makeAbove func() error   // makes above
	groupDir  *shareddir.Dir // BASE/GROUP
	results   *shareddir.Dir // BASE/.multilock/groups/GROUP/done
	fences    *shareddir.Dir // BASE/.multilock/groups/GROUP/fence
	notifier  notifier
	turns     source.Turns
}

// The optional interfaces that a Source implements; their methods have the details.
var (
	_ source.Ledger         = (*Source)(nil)
	_ source.Timekeeper     = (*Source)(nil)
	_ source.NameChecker    = (*Source)(nil)
	_ source.Retention      = (*Source)(nil)
	_ source.ManifestGrower = (*Source)(nil)
	_ source.Chunks         = (*Source)(nil)
	_ source.Examiner       = (*Source)(nil)
	_ source.JobObserver    = (*Source)(nil)
	_ source.RecentJournal  = (*Source)(nil)
	_ source.Local          = (*Source)(nil)
	_ source.Local          = (*contender)(nil)
	_ source.Local          = (*lease)(nil)
)

// Open prepares to use the locks of a group. It creates nothing, so that inspecting leaves no traces; the
// first acquisition creates what is missing. The error is source.ErrInvalid if the base is not a directory,
// if an untrusted user may write to it, or if the group's name is invalid.
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
			return nil, opError("identify this process", "", err)
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

// Close frees the source's descriptors. Locks that were acquired through it stay held, and can still be
// renewed and released.
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

// Examine implements source.Examiner: it checks the mount, tests the filesystem's semantics, compares the
// clocks, and lists what is not trusted. It writes only in .multilock.
func (s *Source) Examine(context.Context) []source.Finding { return s.base.Examine(s.group) }

// Local implements source.Local: one kernel has the filesystem to itself.
func (s *Source) Local() bool { return s.base.Kind.Local }

// Self is the identity of the calling process.
func (s *Source) Self() process.Identity { return s.self }

// Group is the name of the lock group.
func (s *Source) Group() string { return s.group }

// Base is the path of the base directory. If everybody may write to the directory that was asked for, it is
// this user's own directory.
func (s *Source) Base() string { return s.base.Path() }

// Notice is what the user should be informed of once, or "".
func (s *Source) Notice() string { return s.base.Notice }

// UnsaidOneHost is the type of the filesystem if no other host can see it, so that locks on it do not
// exclude other hosts. It is "" in all other cases, and once SaidOneHost was called for the base directory.
// It sends no request to a file server.
func (s *Source) UnsaidOneHost() string { return s.base.UnsaidOneHost() }

// SaidOneHost records in the base directory that a user was informed of UnsaidOneHost.
func (s *Source) SaidOneHost() error { return s.base.SaidOneHost() }

// OneHost is the type of the filesystem if it is known that no other host sees it, else "".
func (s *Source) OneHost() string { return s.base.OneHost() }

// MarkShared writes the marker file of a base directory that hosts share; IsMarkedShared looks for it. A
// mount point on which nothing is mounted does not have the marker.
func (s *Source) MarkShared() error { return s.base.MarkShared() }

// IsMarkedShared reports whether any host has called MarkShared for the base directory.
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

// openGroup opens the lock group's directory if it exists.
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

// removeGroupDir removes the lock group's directory if it is empty.
func (s *Source) removeGroupDir() error {
	return s.inParent(func(parent vfs.Dir) error { return parent.Rmdir(s.group) })
}

// makeGroup opens the lock group's directory, and creates it if it is absent. The error is gone if another
// process, such as a barrier, removed it meanwhile.
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

// Guarantees implements source.Describer.
func (s *Source) Guarantees() []source.Guarantee {
	return []source.Guarantee{
		source.GuaranteeOfDeath(s.self),
		source.GuaranteeOfJobs("a second file in the lock's directory"),
		source.Keeps(source.TraitSafeSilence, "a holder gives its lock up after four fifths of its TTL without a confirmed heartbeat; if the lock, its group or its base was moved, it learns that within eight heartbeats"),
		s.guaranteeOfBreaks(),
		source.Keeps(source.TraitBreakByForce, "by its name, or by one acquisition's token; the holder notices at its next heartbeat"),
		source.Keeps(source.TraitNamedHolder, "host, process, user and command, in the lock's file"),
		source.Keeps(source.TraitPromptRelease, "the lock's directory is empty then, and the next rename acquires it"),
		source.Keeps(source.TraitFenceNumbers, "the length of a file to which each acquisition appends; a crash of a server that exports async can repeat them"),
		s.guaranteeOfClock(),
		source.Keeps(source.TraitQueue, "tickets, which are locks themselves; waiters without --fair may overtake"),
		source.Keeps(source.TraitCheapBarrier, "the group's directory is empty if and only if nothing in it is held"),
		source.Keeps(source.TraitResults, "a file for each job, which only the lock's holder renames into place"),
		source.Keeps(source.TraitManifest, "a directory with the list, renamed into place by the first host"),
		source.Keeps(source.TraitHistory, "a file for each host and day; events that cannot be written are missing"),
	}
}

func (s *Source) guaranteeOfBreaks() source.Guarantee {
	why := "when its process is gone, or after its TTL without a heartbeat by the server's clock and some time of watching"
	if s.base.Kind.ManyClocks {
		why = "when its process is gone, or when another process watched it for its whole TTL without a heartbeat; no clock is trusted here"
	}
	return source.Keeps(source.TraitBreakByEvidence, why)
}

func (s *Source) guaranteeOfClock() source.Guarantee {
	if s.base.Kind.ManyClocks {
		return source.Lacks(source.TraitOneClock, "each host dates files by its own clock: keep clocks in step (NTP) for --every and for reported ages")
	}
	return source.Keeps(source.TraitOneClock, "the file server's, read from a new directory")
}

// is reports whether err has one of the error numbers.
func is(err error, numbers ...syscall.Errno) bool { return vfs.Is(err, numbers...) }

// gone reports that an entry, or the directory that should contain it, no longer exists.
func gone(err error) bool { return vfs.Gone(err) }

// ignoreGone drops the error of an entry that no longer exists, where that is the aim.
func ignoreGone(err error) error {
	if gone(err) {
		return nil
	}
	return err
}

// notEmpty reports that a non-empty directory blocks a rename or an rmdir.
func notEmpty(err error) bool { return vfs.NotEmpty(err) }

// forbidden can mean permissions, but some servers also return these errors for "busy" or "exists".
func forbidden(err error) bool { return is(err, syscall.EPERM, syscall.EACCES, syscall.EBUSY) }

// inDoubt reports that a call may have been carried out, or may still be: its reply is lost or late.
func inDoubt(err error) bool { return vfs.InDoubt(err) }

// opError adds the step that failed, what the user can do, and whether to retry.
func opError(op, name string, err error) error { return shareddir.OpError(op, name, err) }
