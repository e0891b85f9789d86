package simnfs

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/multilock/go/multilock/vfs"
)

// dir is an open directory. Names of more than one element are walked from it, as those of
// a lock that is being staged are.
type dir struct {
	client *Client
	object *object
	path   string
	closed bool
}

func failed(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}

func (d *dir) at(name string) string { return path.Join(d.path, name) }

// walk comes to the directory of the last element.
func (d *dir) walk(name string) (*object, string, error) {
	if d.closed {
		return nil, "", fs.ErrClosed
	}
	at, prefix := d.object, ""
	for {
		head, rest, more := strings.Cut(name, "/")
		if !more {
			return at, name, nil
		}
		prefix += head + "/"
		next, err := d.client.lookup(at, head, d.at(prefix))
		if err != nil {
			return nil, "", err
		}
		at, name = next, rest
	}
}

// change has the server change the entry name of a directory that is there.
func (d *dir) change(kind, name string, change func(at *object, last string) (now *object, err error)) error {
	at, last, err := d.walk(name)
	if err != nil {
		return failed(kind, d.at(name), err)
	}
	err = d.client.tell(kind, d.at(name), func() error {
		if err := d.client.gone(at); err != nil {
			return err
		}
		before := d.client.server.change(at)
		now, err := change(at, last)
		if err != nil {
			delete(d.client.memory(at).names, last)
			return err
		}
		d.client.did(at, before, last, now)
		return nil
	})
	return failed(kind, d.at(name), err)
}

func (d *dir) Mkdir(name string, mode uint32) error {
	return d.change("mkdir", name, func(at *object, last string) (*object, error) {
		if at.entries[last] != nil {
			return nil, syscall.EEXIST
		}
		return d.put(at, last, fs.ModeDir|fs.FileMode(mode)&0o755), nil
	})
}

func (d *dir) put(at *object, name string, mode fs.FileMode) *object {
	made := d.client.server.create(mode)
	at.entries[name] = made
	d.client.server.touch(at)
	return made
}

// Rename finds its target by the number that it is pinned as, whatever it is wrapped in.
func (d *dir) Rename(oldname string, to vfs.Dir, newname string) error {
	number, err := to.Pin()
	if err != nil {
		return err
	}
	defer to.Unpin()
	c, target := d.client, d.client.server.pins[number-firstPin]
	shown := d.at(oldname) + " to " + path.Join(to.Path(), newname)
	err = c.tell("rename", shown, func() error {
		if err := firstOf(c.gone(d.object), c.gone(target)); err != nil {
			return err
		}
		source, into := c.server.change(d.object), c.server.change(target)
		moved := d.object.entries[oldname]
		if err := c.server.rename(d.object, oldname, target, newname, c); err != nil {
			return err
		}
		c.did(d.object, source, oldname, nil)
		if target == d.object {
			into = c.server.change(target)
		}
		c.did(target, into, newname, moved)
		return nil
	})
	return failed("rename", shown, err)
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *dir) Unlink(name string) error { return d.remove("unlink", name, d.unlink) }
func (d *dir) Rmdir(name string) error  { return d.remove("rmdir", name, d.rmdir) }

// remove believes that a name is absent.
func (d *dir) remove(kind, name string, remove func(at *object, last string) (*object, error)) error {
	at, last, err := d.walk(name)
	if err == nil {
		if found, known := d.client.recall(at, last); known && found == nil {
			err = syscall.ENOENT
		}
	}
	if err != nil {
		return failed(kind, d.at(name), err)
	}
	return d.change(kind, name, remove)
}

func (d *dir) unlink(at *object, last string) (*object, error) {
	c, file := d.client, at.entries[last]
	switch {
	case file == nil:
		return nil, syscall.ENOENT
	case file.mode.IsDir():
		return nil, syscall.EISDIR
	case c.opens[file] > 0 && !c.opt.Local && c.silly[file] == (hidden{}):
		c.hide(at, last, file)
		return nil, nil
	}
	delete(at.entries, last)
	c.server.remove(file, c)
	c.server.touch(at)
	return nil, nil
}

func (d *dir) rmdir(at *object, last string) (*object, error) {
	there := at.entries[last]
	switch {
	case there == nil:
		return nil, syscall.ENOENT
	case !there.mode.IsDir():
		return nil, syscall.ENOTDIR
	case len(there.entries) > 0:
		return nil, syscall.ENOTEMPTY
	}
	delete(at.entries, last)
	d.client.server.remove(there, d.client)
	d.client.server.touch(at)
	return nil, nil
}

func (d *dir) Touch() error {
	return failed("touch", d.path, d.client.tell("touch", d.path, func() error { return d.client.touch(d.object) }))
}

func (d *dir) TouchFile(name string) error {
	at, last, err := d.walk(name)
	if err != nil {
		return failed("touch", d.at(name), err)
	}
	found, err := d.client.lookup(at, last, d.at(name))
	if err != nil {
		return failed("touch", d.at(name), err)
	}
	return failed("touch", d.at(name), d.client.tell("touch", d.at(name), func() error { return d.client.touch(found) }))
}

func (c *Client) touch(o *object) error {
	if err := c.gone(o); err != nil {
		return err
	}
	c.server.touch(o)
	c.seen[o] = o.info()
	return nil
}

func (d *dir) Stat() (info vfs.Info, err error) {
	err = d.client.ask("stat", d.path, func() error {
		info, err = d.client.describe(d.object)
		return err
	})
	return info, failed("stat", d.path, err)
}

// describe is carried out on the server. A directory that this client removed has no links.
func (c *Client) describe(o *object) (vfs.Info, error) {
	if err := c.gone(o); errors.Is(err, syscall.ESTALE) {
		return vfs.Info{}, err
	}
	if o.mode.IsDir() {
		c.learn(o)
	}
	c.seen[o] = o.info()
	return o.info(), nil
}

func (d *dir) StatName(name string) (info vfs.Info, err error) {
	err = d.reach("stat", name, func(o *object) error {
		info, err = d.client.describe(o)
		return err
	})
	return info, failed("stat", d.at(name), err)
}

// reach finds a name in memory or on the server, and then asks the server about what it
// found. If that is gone, the kernel walks to it once more, and asks for the name.
func (d *dir) reach(kind, name string, use func(*object) error) error {
	at, last, err := d.walk(name)
	if err != nil {
		return err
	}
	found, known := d.client.recall(at, last)
	if known && found == nil {
		return syscall.ENOENT
	}
	return d.client.ask(kind, d.at(name), func() error {
		if known && use(found) == nil {
			return nil
		}
		found, err := d.client.find(at, last)
		if err != nil {
			return err
		}
		if found == nil {
			return syscall.ENOENT
		}
		return use(found)
	})
}

func (d *dir) StatCached() (vfs.Info, error) { return d.client.cached(d.object), nil }

func (d *dir) Handle(name string) (vfs.Handle, error) {
	at, last, err := d.walk(name)
	if err != nil {
		return "", failed("handle", d.at(name), err)
	}
	found, err := d.client.lookup(at, last, d.at(name))
	if err != nil {
		return "", failed("handle", d.at(name), err)
	}
	return found.handle(), nil
}

func (d *dir) List(visit func(name string) bool) error {
	return d.list(visit, func(*object) bool { return true })
}

func (d *dir) ListFiles(visit func(name string) bool) error {
	return d.list(visit, func(o *object) bool { return !o.mode.IsDir() })
}

func (d *dir) list(visit func(name string) bool, wanted func(*object) bool) error {
	var names []string
	err := d.client.ask("list", d.path, func() error {
		if err := d.client.gone(d.object); err != nil {
			return err
		}
		d.client.learn(d.object)
		for _, name := range slices.Sorted(maps.Keys(d.object.entries)) {
			if wanted(d.object.entries[name]) {
				names = append(names, name)
			}
		}
		return nil
	})
	for _, name := range names {
		if !visit(name) {
			break
		}
	}
	return failed("list", d.path, err)
}

func (d *dir) FileSystem() (vfs.FileSystem, error) {
	if d.client.opt.Local {
		return vfs.FileSystem{Type: "sim", Local: true}, nil
	}
	return vfs.FileSystem{Type: "nfs", NFS: true}, nil
}

func (d *dir) Sync() error     { return nil }
func (d *dir) Guard(vfs.Rules) {}
func (d *dir) Path() string    { return d.path }
func (d *dir) Unpin()          {}

// firstPin is a number that no descriptor of this process has: what is asked of the real
// system about a pinned directory fails.
const firstPin = 1 << 30

func (d *dir) Pin() (int, error) {
	if d.closed {
		return 0, fs.ErrClosed
	}
	s := d.client.server
	if n := slices.Index(s.pins, d.object); n >= 0 {
		return firstPin + n, nil
	}
	s.pins = append(s.pins, d.object)
	return firstPin + len(s.pins) - 1, nil
}

func (d *dir) Close() error {
	d.closed = true
	return nil
}
