package simnfs

import (
	"errors"
	"io"
	"io/fs"
	"syscall"

	"github.com/multilock/go/multilock/vfs"
)

// file is an open file.
type file struct {
	client *Client
	object *object
	path   string
	offset int64
	writes,
	appends,
	closed bool
}

func (d *dir) OpenDir(name string) (opened vfs.Dir, err error) {
	err = d.reach("opendir", name, noFile, func(o *object) error {
		entered, err := d.enter(name, o)
		if err != nil {
			return err
		}
		opened = entered
		_, err = d.client.describe(o)
		return firstOf(err, d.client.gone(o))
	})
	if err != nil {
		return nil, d.failed("open", name, err)
	}
	return opened.(*dir).used(), nil
}

// used counts a use of a directory, until it is closed.
func (d *dir) used() *dir {
	d.client.uses[d.object]++
	return d
}

func (d *dir) Enter(name string) (vfs.Dir, error) {
	at, last, err := d.walk(name)
	if err != nil {
		return nil, d.failed("enter", name, err)
	}
	found, err := d.lookup(at, last, name)
	if err != nil {
		return nil, d.failed("enter", name, err)
	}
	entered, err := d.enter(name, found)
	if err != nil {
		return nil, err
	}
	entered.searches = true
	return entered.used(), nil
}

func (d *dir) enter(name string, o *object) (*dir, error) {
	if !o.mode.IsDir() {
		return nil, d.failed("enter", name, syscall.ENOTDIR)
	}
	return &dir{client: d.client, object: o, path: d.at(name)}, nil
}

func anything(*object) error { return nil }

func noFile(found *object) error {
	if found != nil && !found.mode.IsDir() {
		return syscall.ENOTDIR
	}
	return nil
}

func (d *dir) Open(name string) (opened vfs.File, err error) {
	err = d.reach("open", name, anything, func(o *object) error {
		if err := d.client.gone(o); err != nil {
			return err
		}
		d.client.told(o)
		opened = d.file(name, o)
		return nil
	})
	if err != nil {
		return nil, d.failed("open", name, err)
	}
	return opened, nil
}

func (d *dir) Create(name string, mode uint32) (vfs.File, error) {
	return d.make("create", name, mode, absent)
}

func (d *dir) OpenAppendDurable(name string, mode uint32) (vfs.File, error) {
	return d.OpenAppend(name, mode) // all writes are written through
}

func (d *dir) OpenAppend(name string, mode uint32) (vfs.File, error) {
	opened, err := d.OpenDurable(name, mode)
	if err == nil {
		opened.(*file).appends = true
	}
	return opened, err
}

func (d *dir) OpenDurable(name string, mode uint32) (vfs.File, error) {
	return d.make("make", name, mode, noDirectory)
}

func absent(found *object) error {
	if found != nil {
		return syscall.EEXIST
	}
	return nil
}

func noDirectory(found *object) error {
	if found != nil && found.mode.IsDir() {
		return syscall.EISDIR
	}
	return nil
}

// make opens a file on the server, and creates it if it is absent. A conflicting cached entry decides
// without a request.
func (d *dir) make(kind, name string, mode uint32, admit func(found *object) error) (vfs.File, error) {
	var opened *object
	if opened, err := d.remade(kind, name, admit); opened != nil || err != nil {
		return opened, err
	}
	err := d.changeUnless(kind, name, admit, func(at *object, last string) (*object, error) {
		opened = at.entries[last]
		if err := admit(opened); err != nil {
			return nil, err
		}
		if opened == nil {
			opened = d.put(at, last, fs.FileMode(mode)&0o755)
		}
		return opened, nil
	})
	if err != nil {
		return nil, err
	}
	f := d.file(name, opened)
	f.writes = true
	return f, nil
}

// remade opens a cached file that still exists under any name; nothing is created then. This is also a
// request, but changes nothing.
func (d *dir) remade(kind, name string, admit func(found *object) error) (opened vfs.File, err error) {
	at, last, err := d.walk(name)
	if err != nil {
		return nil, d.failed(kind, name, err)
	}
	found, known := d.client.recall(at, last)
	if !known || found == nil || d.client.opt.Local {
		return nil, nil
	}
	if err := admit(found); err != nil {
		return nil, d.failed(kind, name, err)
	}
	err = d.client.ask(kind, d.at(name), func() error {
		if d.client.gone(found) == nil {
			f := d.file(name, found)
			d.client.told(found)
			f.writes, opened = true, f
		}
		return nil
	})
	return opened, d.failed(kind, name, err)
}

func (d *dir) file(name string, o *object) *file {
	d.client.opens[o]++
	if d.client.opt.V4 && !o.mode.IsDir() {
		o.held++
	}
	return &file{client: d.client, object: o, path: d.at(name)}
}

func (f *file) Read(p []byte) (int, error) {
	n, err := f.ReadAt(p, f.offset)
	f.offset += int64(n)
	return n, err
}

func (f *file) ReadAt(p []byte, off int64) (n int, err error) {
	switch {
	case f.writes:
		return 0, failed("read", f.path, syscall.EBADF)
	case f.object.mode.IsDir():
		return 0, failed("read", f.path, syscall.EISDIR)
	}
	err = f.client.ask("read", f.path, func() error {
		if err := f.client.gone(f.object); errors.Is(err, syscall.ESTALE) {
			if f.client.seen[f.object].Size <= off && f.client.forgot() {
				return io.EOF // nothing to read, so no request
			}
			return err
		}
		if off >= int64(len(f.object.content)) {
			return io.EOF
		}
		n = copy(p, f.object.content[off:])
		return nil
	})
	if err == io.EOF { //nolint:errorlint // exactly this value
		return n, io.EOF
	}
	return n, failed("read", f.path, err)
}

func (f *file) Write(p []byte) (int, error) {
	n, err := f.WriteAt(p, f.offset)
	f.offset += int64(n)
	return n, err
}

func (f *file) WriteAt(p []byte, off int64) (n int, err error) {
	if !f.writes {
		return 0, failed("write", f.path, syscall.EBADF)
	}
	err = f.client.tell("write", f.path, func() error {
		if err := f.client.gone(f.object); errors.Is(err, syscall.ESTALE) {
			return err
		}
		if f.appends {
			off = f.client.end(f.object)
		}
		missing := max(int(off)+len(p)-len(f.object.content), 0)
		f.object.content = append(f.object.content, make([]byte, missing)...)
		n = copy(f.object.content[off:], p)
		f.client.server.touch(f.object)
		f.client.told(f.object)
		return nil
	})
	return n, failed("write", f.path, err)
}

func (f *file) Stat() (info vfs.Info, err error) {
	err = f.client.ask("stat", f.path, func() error {
		info, err = f.client.describe(f.object)
		return err
	})
	return info, failed("stat", f.path, err)
}

func (f *file) StatCached() (vfs.Info, error) { return f.client.cached(f.object), nil }
func (f *file) Sync() error                   { return nil }
func (f *file) Flush() error                  { return nil }

func (f *file) Handle() (vfs.Handle, error) {
	if f.object.links == 0 && f.client.forgot() {
		return "", failed("handle", f.path, syscall.ESTALE)
	}
	return f.object.handle(), nil
}

func (f *file) Close() error {
	if f.closed {
		return fs.ErrClosed
	}
	f.closed = true
	f.client.closed(f.object)
	return nil
}
