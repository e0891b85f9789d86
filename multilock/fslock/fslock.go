package fslock

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"syscall"

	"github.com/google/uuid"

	"github.com/multilock/go/multilock/process"
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
	kind   vfs.FileSystem

	root     root
	base     vfs.Dir
	private  shared // BASE/.multilock
	staging  shared // BASE/.multilock/staging
	groupDir shared // BASE/GROUP
	results  shared // BASE/.multilock/groups/GROUP/done
	fences   shared // BASE/.multilock/groups/GROUP/fence
	clock    serverClock
	tested   selfTest
	notifier notifier
}

// What a Source is beside that; more is said where it is implemented.
var (
	_ source.Ledger      = (*Source)(nil)
	_ source.Timekeeper  = (*Source)(nil)
	_ source.Sweeper     = (*Source)(nil)
	_ source.NameChecker = (*Source)(nil)
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
	if opt.FS == nil {
		opt.FS = vfs.OS{}
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
	base, err := opt.FS.OpenDir(opt.Base)
	if err != nil {
		return nil, invalidBase(opt.Base, err)
	}
	kind, err := base.FileSystem()
	if err != nil {
		return nil, errors.Join(opError("look at the base directory", "", err), base.Close())
	}
	root, err := newRoot(opt.FS, opt.Base, base)
	if err != nil {
		return nil, errors.Join(opError("look at the base directory", "", err), base.Close())
	}
	s := &Source{root: root, group: opt.Group, legacy: opt.LegacyPeers, self: opt.Self, user: opt.User, kind: kind, base: base}
	s.private.open = func() (vfs.Dir, error) { return openDir(s.base, privateDir) }
	s.staging.open = func() (vfs.Dir, error) { return s.openBelow(stagingDir) }
	s.groupDir.open = s.openGroup
	s.results.open = func() (vfs.Dir, error) { return s.findGroupPrivate(doneDir) }
	s.fences.open = func() (vfs.Dir, error) { return s.openGroupPrivate(fenceDir) }
	return s, nil
}

func invalidBase(base string, err error) error {
	why := err.Error()
	switch {
	case is(err, syscall.ENOENT):
		why = "does not exist; create it, on the filesystem that all hosts share"
	case is(err, syscall.ENOTDIR):
		why = "is not a directory"
	case is(err, syscall.EACCES, syscall.EPERM):
		why = "may not be opened by this user"
	}
	return &source.InvalidError{What: "base directory", Got: base, Why: why, Err: err}
}

// Close frees the source's descriptors. Locks that were acquired through it stay
// held, and can still be renewed and released.
func (s *Source) Close() error {
	s.notifier.close()
	s.groupDir.close()
	s.fences.close()
	s.results.close()
	s.staging.close()
	s.private.close()
	return s.base.Close()
}

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
	defer s.groupDir.done(group)
	names, err := group.List()
	if gone(err) {
		s.groupDir.drop(group)
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
	if !s.kind.Local {
		if _, err := s.base.Stat(); err != nil {
			return nil, err
		}
	}
	return s.base.OpenDir(s.group)
}

// makeGroup is the lock group, made if it is absent. The error is gone if
// somebody removed it meanwhile, as a barrier does.
func (s *Source) makeGroup() (*handle, error) {
	group, err := s.groupDir.use()
	if !is(err, syscall.ENOENT) {
		return group, err
	}
	if err := s.base.Mkdir(s.group, dirMode); err != nil && !is(err, syscall.EEXIST) {
		return nil, err
	}
	return s.groupDir.use()
}

// presentGroup is the group that has the name now.
func (s *Source) presentGroup() (*handle, error) { return s.groupDir.present() }

func (s *Source) groupError(err error) error {
	if is(err, syscall.ENOTDIR, syscall.ELOOP) {
		return &source.InvalidError{What: "lock group", Got: s.group, Why: "is not a directory (nor may it be a symbolic link to one)", Err: err}
	}
	return opError("open the lock group", "", err)
}

// openBelow opens the directory name of .multilock, made if absent.
func (s *Source) openBelow(name string) (vfs.Dir, error) {
	private, err := s.private.use()
	if err != nil {
		return nil, err
	}
	defer s.private.done(private)
	dir, err := openDir(private, name)
	if is(err, syscall.ESTALE) || (gone(err) && !linked(private)) {
		s.private.drop(private)
	}
	return dir, err
}

// linked says whether an open directory still has a name.
func linked(dir vfs.Dir) bool {
	info, err := dir.Stat()
	return err == nil && info.Links > 0
}

// openDir opens the directory name, made if it is absent.
//
// After the answer that it exists already, the name may still be cached as
// absent: the parent's attributes are fetched then, which ends that.
func openDir(parent vfs.Dir, name string) (vfs.Dir, error) {
	dir, err := parent.OpenDir(name)
	if !is(err, syscall.ENOENT) {
		return dir, err
	}
	if err := parent.Mkdir(name, dirMode); err != nil && !is(err, syscall.EEXIST) {
		return nil, err
	}
	if _, err := parent.Stat(); err != nil {
		return nil, err
	}
	return parent.OpenDir(name)
}

// newToken names one attempt. The same name must never be used twice.
func newToken() (string, error) {
	id, err := uuid.NewRandom()
	if err != nil {
		return "", opError("draw a random token", "", err)
	}
	return id.String(), nil
}

// isRegular tells a file from what somebody may have put in its place.
func isRegular(info vfs.Info) bool { return info.Mode&fs.ModeType == 0 }
