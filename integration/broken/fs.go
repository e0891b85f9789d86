//go:build linux

package broken

import "github.com/multilock/go/multilock/vfs"

// Dir makes a directory break a rule.
type Dir func(vfs.Dir) vfs.Dir

// FS is the system's own file system, all of whose directories break a rule.
type FS struct{ Broken Dir }

// OpenDir opens a directory by its path.
func (f FS) OpenDir(path string) (vfs.Dir, error) {
	return f.open(vfs.OS{}.OpenDir(path))
}

func (f FS) open(d vfs.Dir, err error) (vfs.Dir, error) {
	if err != nil {
		return nil, err
	}
	return dir{f.Broken(d), f}, nil
}

// dir breaks the directories below it as well.
type dir struct {
	vfs.Dir
	fs FS
}

func (d dir) OpenDir(name string) (vfs.Dir, error) { return d.fs.open(d.Dir.OpenDir(name)) }
