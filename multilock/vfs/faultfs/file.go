package faultfs

import "github.com/multilock/go/multilock/vfs"

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

// transferred is the count that belongs to a reply: whoever gets an error does
// not learn how much was read or written.
func transferred(n int, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	return n, nil
}

func (f *file) Stat() (info vfs.Info, err error) {
	err = f.call("file.stat").do(func() error {
		info, err = f.inner.Stat()
		return err
	})
	return info, err
}

func (f *file) StatCached() (info vfs.Info, err error) {
	err = f.call("file.statcached").do(func() error {
		info, err = f.inner.StatCached()
		return err
	})
	return info, err
}

func (f *file) Handle() (handle vfs.Handle, err error) {
	err = f.call("file.handle").do(func() error {
		handle, err = f.inner.Handle()
		return err
	})
	return handle, err
}

func (f *file) Sync() error { return f.call("sync").do(f.inner.Sync) }

func (f *file) Flush() error { return f.call("flush").do(f.inner.Flush) }

func (f *file) Close() error { return f.call("file.close").closing(f.inner.Close) }
