package fslock

import (
	"context"
	"slices"
	"syscall"
	"time"

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
	// Self is who the calling process is; found out if zero. For tests.
	Self process.Identity
}

// Source is the locks of one group in one base directory, and the results of
// the jobs that ran under them.
type Source struct {
	group  string
	legacy bool
	self   process.Identity
	user   string

	base     *shareddir.Base
	groupDir *shareddir.Dir // BASE/GROUP
	results  *shareddir.Dir // BASE/.multilock/groups/GROUP/done
	fences   *shareddir.Dir // BASE/.multilock/groups/GROUP/fence
	notifier notifier
}

// What a Source is beside that; more is said where it is implemented.
var (
	_ source.Ledger      = (*Source)(nil)
	_ source.Timekeeper  = (*Source)(nil)
	_ source.Sweeper     = (*Source)(nil)
	_ source.NameChecker = (*Source)(nil)
	_ source.Examiner    = (*Source)(nil)
)

// Open prepares to use the locks of a group. It creates nothing: that is left to
// the first attempt at a lock, so that looking leaves no traces. The error is
// source.ErrInvalid if the base is no directory or the group's name cannot be one.
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
	if opt.Self == (process.Identity{}) {
		self, err := process.Self()
		if err != nil {
			return nil, opError("find out who this process is", "", err)
		}
		opt.Self = self
	}
	base, err := shareddir.Open(shareddir.Options{Path: opt.Base, FS: opt.FS, Self: opt.Self})
	if err != nil {
		return nil, err
	}
	s := &Source{base: base, group: opt.Group, legacy: opt.LegacyPeers, self: opt.Self, user: opt.User}
	s.groupDir = shareddir.NewDir(s.openGroup)
	s.results = shareddir.NewDir(func() (vfs.Dir, error) { return s.findGroupPrivate(doneDir) })
	s.fences = shareddir.NewDir(func() (vfs.Dir, error) { return s.openGroupPrivate(fenceDir) })
	return s, nil
}

// Close frees the source's descriptors. Locks that were acquired through it stay
// held, and can still be renewed and released.
func (s *Source) Close() error {
	s.notifier.close()
	s.groupDir.Close()
	s.fences.Close()
	s.results.Close()
	return s.base.Close()
}

// Now implements source.Timekeeper: the time of the file system's server.
func (s *Source) Now(context.Context) (time.Time, error) { return s.base.Now(source.ClockFresh) }

// Examine implements source.Examiner: it looks at the mount, tries out the
// filesystem's rules, and compares the clocks. It writes in .multilock alone.
func (s *Source) Examine(context.Context) []source.Finding { return s.base.Examine() }

// Self is who the calling process is.
func (s *Source) Self() process.Identity { return s.self }

// Group is the name of the lock group.
func (s *Source) Group() string { return s.group }

// Base is the path of the base directory.
func (s *Source) Base() string { return s.base.Path() }

// Names implements source.Source: the entries of the group's directory.
func (s *Source) Names(context.Context) ([]string, error) {
	group, err := s.presentGroup()
	if gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, s.groupError(err)
	}
	defer s.groupDir.Done(group)
	names, err := group.List()
	if gone(err) {
		s.groupDir.Drop(group)
		return nil, nil
	}
	if err != nil {
		return nil, opError("list the lock group", "", err)
	}
	slices.Sort(names)
	return names, nil
}

// openGroup opens the lock group if there is one. An NFS client may have cached
// that there is none: fetching the parent's attributes ends that.
func (s *Source) openGroup() (vfs.Dir, error) {
	if !s.base.Kind.Local {
		if _, err := s.base.Stat(); err != nil {
			return nil, err
		}
	}
	return s.base.OpenDir(s.group)
}

// makeGroup is the lock group, made if it is absent. The error is gone if
// somebody removed it meanwhile, as a barrier does.
func (s *Source) makeGroup() (*shareddir.Handle, error) {
	group, err := s.groupDir.Use()
	if !is(err, syscall.ENOENT) {
		return group, err
	}
	if err := s.base.Mkdir(s.group, shareddir.DirMode); err != nil && !is(err, syscall.EEXIST) {
		return nil, err
	}
	return s.groupDir.Use()
}

// presentGroup is the group that has the name now.
func (s *Source) presentGroup() (*shareddir.Handle, error) { return s.groupDir.Present() }

func (s *Source) groupError(err error) error {
	if is(err, syscall.ENOTDIR, syscall.ELOOP) {
		return &source.InvalidError{What: "lock group", Got: s.group, Why: "is not a directory (nor may it be a symbolic link to one)", Err: err}
	}
	return opError("open the lock group", "", err)
}
