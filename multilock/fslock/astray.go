package fslock

import (
	"path/filepath"
	"syscall"

	"github.com/multilock/go/multilock/vfs"
)

// root is the base directory as it was opened, and the way by which others come to it.
type root struct {
	fs    vfs.FS
	path  string // from the root directory, so that a chdir changes nothing; "" if that is not known
	found vfs.Info
}

func newRoot(fs vfs.FS, base string, dir vfs.Dir) (root, error) {
	path, err := filepath.Abs(base)
	if err != nil {
		path = "" // this process stands in a directory that has no path
	}
	found, err := dir.StatCached()
	return root{fs: fs, path: path, found: found}, err
}

// astray says what was moved, if the way by which others come to a group does not lead to
// the directory that is open. It is "" if all is well, or nobody can tell: what cannot be
// looked up proves nothing.
func (s *Source) astray(group vfs.Dir) (moved string) {
	if !s.inodesCount() || s.root.path == "" {
		return ""
	}
	base, err := s.root.fs.OpenDir(s.root.path)
	if leadsNowhere(err) {
		return "base directory"
	}
	if err != nil {
		return ""
	}
	defer base.Close() //nolint:errcheck // a directory
	if info, err := base.Stat(); err == nil && !same(info, s.root.found) {
		return "base directory"
	}
	named, err := base.StatName(s.group)
	if leadsNowhere(err) {
		return "lock group"
	}
	own, failed := group.StatCached()
	if err == nil && failed == nil && !same(named, own) {
		return "lock group"
	}
	return ""
}

// leadsNowhere says that a path does not lead to a directory any more.
func leadsNowhere(err error) bool { return is(err, syscall.ENOENT, syscall.ENOTDIR, syscall.ELOOP) }

// same says that two descriptions are of one file or directory.
func same(a, b vfs.Info) bool { return a.Inode == b.Inode && a.Device == b.Device }
