package shareddir

import (
	"path/filepath"
	"syscall"

	"github.com/multilock/go/multilock/vfs"
)

// way is that by which others come to the base directory, and where it led when that
// was opened.
type way struct {
	fs    vfs.FS
	path  string // from the root directory, so that a chdir changes nothing; "" if that is not known
	found vfs.Info
}

func newWay(fs vfs.FS, base string, dir vfs.Dir) (way, error) {
	path, err := filepath.Abs(base)
	if err != nil {
		path = "" // this process stands in a directory that has no path
	}
	found, err := dir.StatCached()
	return way{fs: fs, path: path, found: found}, err
}

// Moved says what was moved, if the way by which others come to the directory name of the
// base does not lead to dir, the one that is open. It is "" if all is well, or nobody can
// tell: what cannot be looked up proves nothing.
func (b *Base) Moved(dir vfs.Dir, name string) (what string) {
	if !b.InodesCount() || b.way.path == "" {
		return ""
	}
	base, err := b.way.fs.OpenDir(b.way.path)
	if leadsNowhere(err) {
		return "base directory"
	}
	if err != nil {
		return ""
	}
	defer base.Close() //nolint:errcheck // a directory
	if info, err := base.Stat(); err == nil && !info.Same(b.way.found) {
		return "base directory"
	}
	named, err := base.StatName(name)
	if leadsNowhere(err) {
		return "lock group"
	}
	own, failed := dir.StatCached()
	if err == nil && failed == nil && !named.Same(own) {
		return "lock group"
	}
	return ""
}

// leadsNowhere says that a path does not lead to a directory any more.
func leadsNowhere(err error) bool { return vfs.Is(err, syscall.ENOENT, syscall.ENOTDIR, syscall.ELOOP) }
