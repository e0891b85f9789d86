package shareddir

import (
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock/vfs"
)

// ownDir is a user's own directory in one like /tmp as long as it may be absent: the first
// Mkdir in it makes it. Until then nothing is in it.
type ownDir struct {
	common vfs.Dir
	name   string
	info   vfs.Info // as it will be made

	mu    bounded.Turn
	rules vfs.Rules
	made  vfs.Dir // nil as long as it was not seen
}

var _ vfs.Dir = (*ownDir)(nil)

// newOwnDir is the directory name in one that everybody may write to, described by common.
func newOwnDir(dir vfs.Dir, name string, uid, gid uint32, common vfs.Info) *ownDir {
	return &ownDir{common: dir, name: name, info: vfs.Info{Mode: fs.ModeDir | ownMode, UID: uid, GID: gid, Device: common.Device, Links: 2}}
}

const ownMode = 0o700

// open opens the directory if it is there: this process or another one of the user made it.
func (d *ownDir) open() (vfs.Dir, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.made != nil {
		return d.made, nil
	}
	dir, err := d.common.OpenDir(d.name)
	if err != nil {
		return nil, err
	}
	info, err := dir.StatCached()
	if err == nil && d.rules.Admit != nil {
		err = d.rules.Admit(info, false)
	}
	if err != nil {
		_ = dir.Close() // a directory that is not used
		return nil, err
	}
	dir.Guard(d.rules)
	d.made = dir
	return dir, nil
}

// Absent says that the base is a user's own directory in one like /tmp, and not made yet.
func (b *Base) Absent() bool {
	d, own := b.Dir.(*ownDir)
	if !own {
		return false
	}
	_, _ = d.common.Stat() // an NFS client forgets that it was absent if that has changed
	_, err := d.open()
	return vfs.Is(err, syscall.ENOENT)
}

func (d *ownDir) do(f func(vfs.Dir) error) error {
	dir, err := d.open()
	if err != nil {
		return err
	}
	return f(dir)
}

func ask[T any](d *ownDir, f func(vfs.Dir) (T, error)) (answer T, err error) {
	err = d.do(func(dir vfs.Dir) error {
		answer, err = f(dir)
		return err
	})
	return answer, err
}

// Mkdir makes the directory itself, too.
func (d *ownDir) Mkdir(name string, mode uint32) error {
	if _, err := d.open(); vfs.Is(err, syscall.ENOENT) {
		if err := d.common.Mkdir(d.name, ownMode); err != nil && !vfs.Is(err, syscall.EEXIST) {
			return err
		}
	}
	return d.do(func(dir vfs.Dir) error { return dir.Mkdir(name, mode) })
}

func (d *ownDir) Guard(rules vfs.Rules) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rules = rules
	if d.made != nil {
		d.made.Guard(rules)
	}
}

// Stat describes it as it will be made if it is absent.
func (d *ownDir) Stat() (vfs.Info, error) { return d.described(vfs.Dir.Stat) }

// StatCached does the same.
func (d *ownDir) StatCached() (vfs.Info, error) { return d.described(vfs.Dir.StatCached) }

func (d *ownDir) described(stat func(vfs.Dir) (vfs.Info, error)) (vfs.Info, error) {
	info, err := ask(d, stat)
	if vfs.Is(err, syscall.ENOENT) {
		return d.info, nil
	}
	return info, err
}

func (d *ownDir) Path() string { return filepath.Join(d.common.Path(), d.name) }

// FileSystem and the descriptor are those of the directory around it, which is on the same one.
func (d *ownDir) FileSystem() (vfs.FileSystem, error) { return d.common.FileSystem() }
func (d *ownDir) Pin() (int, error)                   { return d.common.Pin() }
func (d *ownDir) Unpin()                              { d.common.Unpin() }

func (d *ownDir) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.made != nil {
		_ = d.made.Close() // a directory
	}
	return d.common.Close()
}

func (d *ownDir) OpenDir(name string) (vfs.Dir, error) {
	return ask(d, func(dir vfs.Dir) (vfs.Dir, error) { return dir.OpenDir(name) })
}

func (d *ownDir) Enter(name string) (vfs.Dir, error) {
	return ask(d, func(dir vfs.Dir) (vfs.Dir, error) { return dir.Enter(name) })
}

func (d *ownDir) Open(name string) (vfs.File, error) {
	return ask(d, func(dir vfs.Dir) (vfs.File, error) { return dir.Open(name) })
}

func (d *ownDir) Create(name string, mode uint32) (vfs.File, error) {
	return ask(d, func(dir vfs.Dir) (vfs.File, error) { return dir.Create(name, mode) })
}

func (d *ownDir) OpenAppend(name string, mode uint32) (vfs.File, error) {
	return ask(d, func(dir vfs.Dir) (vfs.File, error) { return dir.OpenAppend(name, mode) })
}

func (d *ownDir) OpenDurable(name string, mode uint32) (vfs.File, error) {
	return ask(d, func(dir vfs.Dir) (vfs.File, error) { return dir.OpenDurable(name, mode) })
}

func (d *ownDir) OpenAppendDurable(name string, mode uint32) (vfs.File, error) {
	return ask(d, func(dir vfs.Dir) (vfs.File, error) { return dir.OpenAppendDurable(name, mode) })
}

func (d *ownDir) StatName(name string) (vfs.Info, error) {
	return ask(d, func(dir vfs.Dir) (vfs.Info, error) { return dir.StatName(name) })
}

func (d *ownDir) Handle(name string) (vfs.Handle, error) {
	return ask(d, func(dir vfs.Dir) (vfs.Handle, error) { return dir.Handle(name) })
}

func (d *ownDir) List(visit func(string) bool) error {
	return d.do(func(dir vfs.Dir) error { return dir.List(visit) })
}

func (d *ownDir) ListFiles(visit func(string) bool) error {
	return d.do(func(dir vfs.Dir) error { return dir.ListFiles(visit) })
}

func (d *ownDir) Rename(oldname string, to vfs.Dir, newname string) error {
	return d.do(func(dir vfs.Dir) error { return dir.Rename(oldname, to, newname) })
}

func (d *ownDir) Unlink(name string) error {
	return d.do(func(dir vfs.Dir) error { return dir.Unlink(name) })
}

func (d *ownDir) Rmdir(name string) error {
	return d.do(func(dir vfs.Dir) error { return dir.Rmdir(name) })
}

func (d *ownDir) TouchFile(name string) error {
	return d.do(func(dir vfs.Dir) error { return dir.TouchFile(name) })
}

func (d *ownDir) Touch() error { return d.do(vfs.Dir.Touch) }
func (d *ownDir) Sync() error  { return d.do(vfs.Dir.Sync) }
