package faultfs

import (
	"path/filepath"

	"github.com/multilock/go/multilock/vfs"
)

// dir is a directory below an FS.
type dir struct {
	fs    *FS
	base  string
	inner vfs.Dir
}

func (d *dir) call(kind, name string) call {
	return call{fs: d.fs, base: d.base, kind: kind, real: filepath.Join(d.inner.Path(), name)}
}

func (d *dir) OpenDir(name string) (vfs.Dir, error) {
	return openDir(d.call("opendir", name), func() (vfs.Dir, error) { return d.inner.OpenDir(name) })
}

func (d *dir) Enter(name string) (vfs.Dir, error) {
	return openDir(d.call("enter", name), func() (vfs.Dir, error) { return d.inner.Enter(name) })
}

func (d *dir) Guard(rules vfs.Rules) { d.inner.Guard(rules) }

func (d *dir) Open(name string) (vfs.File, error) {
	return openFile(d.call("open", name), func() (vfs.File, error) { return d.inner.Open(name) })
}

func (d *dir) Create(name string, mode uint32) (vfs.File, error) {
	return openFile(d.call("create", name), func() (vfs.File, error) { return d.inner.Create(name, mode) })
}

func (d *dir) OpenAppend(name string, mode uint32) (vfs.File, error) {
	return openFile(d.call("openappend", name), func() (vfs.File, error) { return d.inner.OpenAppend(name, mode) })
}

func (d *dir) OpenDurable(name string, mode uint32) (vfs.File, error) {
	return openFile(d.call("opendurable", name), func() (vfs.File, error) { return d.inner.OpenDurable(name, mode) })
}

func (d *dir) OpenAppendDurable(name string, mode uint32) (vfs.File, error) {
	return openFile(d.call("openappenddurable", name), func() (vfs.File, error) { return d.inner.OpenAppendDurable(name, mode) })
}

func (d *dir) Mkdir(name string, mode uint32) error {
	return d.call("mkdir", name).do(func() error { return d.inner.Mkdir(name, mode) })
}

// Rename passes on the wrapped directory if it can unwrap the target. Any other wrapper passes its
// descriptor through.
func (d *dir) Rename(oldname string, to vfs.Dir, newname string) error {
	c := d.call("rename", oldname)
	c.target = filepath.Join(to.Path(), newname)
	if wrapped, ok := to.(*dir); ok {
		to = wrapped.inner
	}
	return c.do(func() error { return d.inner.Rename(oldname, to, newname) })
}

func (d *dir) Unlink(name string) error {
	return d.call("unlink", name).do(func() error { return d.inner.Unlink(name) })
}

func (d *dir) Rmdir(name string) error {
	return d.call("rmdir", name).do(func() error { return d.inner.Rmdir(name) })
}

func (d *dir) Touch() error { return d.call("touch", "").do(d.inner.Touch) }

func (d *dir) TouchFile(name string) error {
	return d.call("touchfile", name).do(func() error { return d.inner.TouchFile(name) })
}

func (d *dir) Stat() (vfs.Info, error) { return ask(d.call("stat", ""), d.inner.Stat) }

func (d *dir) StatName(name string) (vfs.Info, error) {
	return ask(d.call("statname", name), func() (vfs.Info, error) { return d.inner.StatName(name) })
}

func (d *dir) StatCached() (vfs.Info, error) {
	return ask(d.call("statcached", ""), d.inner.StatCached)
}

func (d *dir) Handle(name string) (vfs.Handle, error) {
	return ask(d.call("handle", name), func() (vfs.Handle, error) { return d.inner.Handle(name) })
}

func (d *dir) List(visit func(name string) bool) error {
	return d.call("list", "").do(func() error { return d.inner.List(visit) })
}

func (d *dir) ListFiles(visit func(name string) bool) error {
	return d.call("listfiles", "").do(func() error { return d.inner.ListFiles(visit) })
}

func (d *dir) Sync() error { return d.call("syncdir", "").do(d.inner.Sync) }

func (d *dir) FileSystem() (vfs.FileSystem, error) {
	kind, err := ask(d.call("filesystem", ""), d.inner.FileSystem)
	if described := d.fs.described(); described != nil && err == nil {
		kind = *described
	}
	return kind, err
}

func (d *dir) Path() string { return d.inner.Path() }

func (d *dir) Pin() (int, error) { return d.inner.Pin() }

func (d *dir) Unpin() { d.inner.Unpin() }

func (d *dir) Close() error { return d.call("close", "").closing(d.inner.Close) }

// file is an open file below an FS.
type file struct {
	fs         *FS
	base, path string
	inner      vfs.File
}

func (f *file) call(kind string) call {
	return call{fs: f.fs, base: f.base, kind: kind, real: f.path}
}

func (f *file) Read(p []byte) (n int, err error) {
	err = f.call("read").do(func() error {
		n, err = f.inner.Read(p)
		return err
	})
	return transferred(n, err)
}

func (f *file) ReadAt(p []byte, off int64) (n int, err error) {
	err = f.call("read").do(func() error {
		n, err = f.inner.ReadAt(p, off)
		return err
	})
	return transferred(n, err)
}

func (f *file) Write(p []byte) (int, error) {
	n := len(p)
	err := f.call("write").do(func() error {
		var err error
		n, err = f.inner.Write(p)
		return err
	})
	return transferred(n, err)
}

func (f *file) WriteAt(p []byte, off int64) (int, error) {
	n := len(p)
	err := f.call("writeat").do(func() error {
		var err error
		n, err = f.inner.WriteAt(p, off)
		return err
	})
	return transferred(n, err)
}

// transferred returns the count for a reply: with an error, the caller does not learn how much was read
// or written.
func transferred(n int, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	return n, nil
}

func (f *file) Stat() (vfs.Info, error) { return ask(f.call("file.stat"), f.inner.Stat) }

func (f *file) StatCached() (vfs.Info, error) {
	return ask(f.call("file.statcached"), f.inner.StatCached)
}

func (f *file) Handle() (vfs.Handle, error) { return ask(f.call("file.handle"), f.inner.Handle) }

func (f *file) Sync() error { return f.call("sync").do(f.inner.Sync) }

func (f *file) Flush() error { return f.call("flush").do(f.inner.Flush) }

func (f *file) Close() error { return f.call("file.close").closing(f.inner.Close) }
