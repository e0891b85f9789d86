package cooklock

import (
	"context"
	"errors"
	"slices"
	"syscall"

	"github.com/google/uuid"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// Names below the base directory.
const (
	privateDir = ".multilock"
	cookDir    = "cook"
	stagingDir = "staging"
	groupsDir  = "groups"

	// DefaultGroup is the group of locks if none is named.
	DefaultGroup = ".locks"
)

const (
	dirMode  = 0o777 // narrowed by the umask, as people expect it
	fileMode = 0o666
	// nameMax is NAME_MAX of every file system of consequence, in bytes.
	nameMax = 255
	// maxRounds bounds how often a step is begun anew because others were quicker.
	maxRounds = 1000
)

// DirectoryOptions say where registers live.
type DirectoryOptions struct {
	// Base is the shared directory; it must exist. "." if empty.
	Base string
	// Group keeps the registers of one purpose apart; DefaultGroup if empty.
	Group string
	// FS is the file system; the operating system's if nil.
	FS vfs.FS
}

// Directory keeps registers in a shared directory, one for each name. What it
// needs of the file system is what the lock of package fslock needs: that a rename
// onto a directory which is not empty fails. It is safe for concurrent use.
type Directory struct {
	group  string
	base   vfs.Dir
	kind   vfs.FileSystem
	tested selfTest
}

// OpenDirectory prepares to use the registers of a group. It creates nothing: that
// is left to the first Swap. The error is source.ErrInvalid if the base is no
// directory or the group's name cannot be one.
func OpenDirectory(opt DirectoryOptions) (*Directory, error) {
	if opt.Base == "" {
		opt.Base = "."
	}
	if opt.Group == "" {
		opt.Group = DefaultGroup
	}
	if opt.FS == nil {
		opt.FS = vfs.OS{}
	}
	if err := checkElement("lock group", opt.Group); err != nil {
		return nil, err
	}
	base, err := opt.FS.OpenDir(opt.Base)
	if err != nil {
		return nil, invalidBase(opt.Base, err)
	}
	kind, err := base.FileSystem()
	if err != nil {
		return nil, errors.Join(fileError("look at the base directory", "", err), base.Close())
	}
	return &Directory{group: opt.Group, base: base, kind: kind}, nil
}

func invalidBase(base string, err error) error {
	why := err.Error()
	switch {
	case vfs.Is(err, syscall.ENOENT):
		why = "does not exist; create it, on the filesystem that all hosts share"
	case vfs.Is(err, syscall.ENOTDIR):
		why = "is not a directory"
	case vfs.Is(err, syscall.EACCES, syscall.EPERM):
		why = "may not be opened by this user"
	}
	return &source.InvalidError{What: "base directory", Got: base, Why: why, Err: err}
}

func checkElement(what, name string) error {
	if why := vfs.NameProblem(name, nameMax); why != "" {
		return &source.InvalidError{What: what, Got: name, Why: why}
	}
	return nil
}

// Base is the path of the base directory.
func (d *Directory) Base() string { return d.base.Path() }

// Group is the name of the group.
func (d *Directory) Group() string { return d.group }

// Close frees the descriptor of the base directory.
func (d *Directory) Close() error { return d.base.Close() }

// Register is the register of a name. The error is source.ErrInvalid if no
// entry of a directory can have that name.
func (d *Directory) Register(name string) (Register, error) {
	if err := checkElement("lock name", name); err != nil {
		return nil, err
	}
	return &directoryRegister{place: d, name: name}, nil
}

// Names lists the registers that somebody has used, sorted.
func (d *Directory) Names(context.Context) ([]string, error) {
	group, err := d.openGroup()
	if vfs.Gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fileError("open the lock group", "", err)
	}
	defer group.Close() //nolint:errcheck // a directory
	names, err := group.List()
	if vfs.Gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fileError("list the lock group", "", err)
	}
	slices.Sort(names)
	return names, nil
}

// openGroup opens the group if there is one.
func (d *Directory) openGroup() (vfs.Dir, error) {
	return d.walk(d.fresh, privateDir, cookDir, groupsDir, d.group)
}

// makeGroup opens the group, made if it is absent.
func (d *Directory) makeGroup() (vfs.Dir, error) {
	return d.walk(makeDir, privateDir, cookDir, groupsDir, d.group)
}

// openStaging opens the directory in which things are prepared and taken apart,
// under names that are used once.
func (d *Directory) openStaging() (vfs.Dir, error) {
	return d.walk(makeDir, privateDir, cookDir, stagingDir)
}

// walk opens one directory below the other.
func (d *Directory) walk(open func(vfs.Dir, string) (vfs.Dir, error), names ...string) (vfs.Dir, error) {
	at := d.base
	for _, name := range names {
		below, err := open(at, name)
		if at != d.base {
			_ = at.Close()
		}
		if err != nil {
			return nil, err
		}
		at = below
	}
	return at, nil
}

// fresh opens the directory name as the server has it now: fetching the parent's
// attributes makes an NFS client forget the names that it cached, if the parent
// has changed.
func (d *Directory) fresh(parent vfs.Dir, name string) (vfs.Dir, error) {
	if !d.kind.Local {
		if _, err := parent.Stat(); err != nil {
			return nil, err
		}
	}
	return parent.OpenDir(name)
}

// makeDir opens the directory name, made if it is absent. After the answer that it
// exists already, an NFS client may still have cached that it does not.
func makeDir(parent vfs.Dir, name string) (vfs.Dir, error) {
	dir, err := parent.OpenDir(name)
	if !vfs.Is(err, syscall.ENOENT) {
		return dir, err
	}
	if err := parent.Mkdir(name, dirMode); err != nil && !vfs.Is(err, syscall.EEXIST) {
		return nil, err
	}
	if _, err := parent.Stat(); err != nil {
		return nil, err
	}
	return parent.OpenDir(name)
}

// newToken names one thing once.
func newToken() (string, error) {
	id, err := uuid.NewRandom()
	if err != nil {
		return "", &source.OpError{Source: sourceName, Op: "draw a random token", Err: err}
	}
	return id.String(), nil
}

// fileError names the step in which err came up, and what to do about it.
func fileError(op, name string, err error) error {
	hint := vfs.Hint(err)
	if vfs.Is(err, syscall.EACCES, syscall.EPERM) {
		hint = "check the permissions; everybody who shares these locks must be able to write to all of .multilock/cook, so set a common group and umask 002"
	}
	return &source.OpError{Source: sourceName, Op: op, Name: name, Err: err, Hint: hint}
}
