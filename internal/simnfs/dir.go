package simnfs

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/multilock/go/multilock/vfs"
)

// dir is an open directory. Names with several elements, such as those of a lock that is being staged,
// are resolved from it.
type dir struct {
	client    *Client
	object    *object
	path      string
	searches, // it was entered, and not opened
	closed bool
}

func failed(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}

// at returns the path of a name. The name may have a trailing slash.
func (d *dir) at(name string) string {
	return strings.TrimSuffix(d.path, "/") + "/" + strings.TrimSuffix(name, "/")
}

// failed adds the path to an error, if any.
func (d *dir) failed(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return failed(op, d.at(name), err)
}

// walk resolves a name up to the directory of its last element.
func (d *dir) walk(name string) (*object, string, error) {
	if d.closed {
		return nil, "", fs.ErrClosed
	}
	at, rest := d.object, name
	for {
		head, behind, more := strings.Cut(rest, "/")
		if !more {
			return at, rest, nil
		}
		next, err := d.lookup(at, head, name[:len(name)-len(behind)])
		if err != nil {
			return nil, "", err
		}
		at, rest = next, behind
	}
}

// lookup finds the last element of a name, with a request only if it is not cached. An expired entry is
// still valid if the directory has not changed.
func (d *dir) lookup(at *object, last, name string) (*object, error) {
	found, known := d.client.recall(at, last)
	if !known {
		err := d.client.ask("lookup", d.at(name), func() (err error) {
			found, err = d.client.find(at, last)
			return err
		})
		if err != nil {
			return nil, err
		}
		d.client.finds(found)
	}
	if found == nil {
		return nil, syscall.ENOENT
	}
	return found, nil
}

// changeUnless makes a change unless a cached entry conflicts with it.
func (d *dir) changeUnless(kind, name string, admit func(found *object) error, change func(at *object, last string) (*object, error)) error {
	at, last, err := d.walk(name)
	if err == nil {
		if found, known := d.client.recall(at, last); known {
			err = admit(found)
		}
	}
	if err != nil {
		return d.failed(kind, name, err)
	}
	return d.change(kind, name, nil, change)
}

// change makes the server change the entry name. found is the object that the client has for that name.
func (d *dir) change(kind, name string, found *object, change func(at *object, last string) (now *object, err error)) error {
	at, last, err := d.walk(name)
	if err != nil {
		return d.failed(kind, name, err)
	}
	err = d.client.tellOf(kind, d.at(name), found, func() error {
		if err := d.client.gone(at); err != nil {
			return err
		}
		before := d.client.server.change(at)
		now, err := change(at, last)
		if err != nil {
			if !d.client.forgot() { // a client that creates or removes a name looks it up
				_, _ = d.client.find(at, last)
			}
			return err
		}
		d.client.did(at, before, last, now)
		return nil
	})
	return d.failed(kind, name, err)
}

func (d *dir) Mkdir(name string, mode uint32) error {
	return d.changeUnless("mkdir", name, absent, func(at *object, last string) (*object, error) {
		if at.entries[last] != nil {
			return nil, syscall.EEXIST
		}
		return d.put(at, last, fs.ModeDir|fs.FileMode(mode)&0o755), nil
	})
}

func (d *dir) put(at *object, name string, mode fs.FileMode) *object {
	made := d.client.create(mode)
	made.made = d.at(name)
	at.entries[name] = made
	d.client.server.touch(at)
	return made
}

// Rename finds its target directory by its pinned number, in any wrapper.
func (d *dir) Rename(oldname string, to vfs.Dir, newname string) error {
	number, err := to.Pin()
	if err != nil {
		return err
	}
	defer to.Unpin()
	c, target := d.client, d.client.server.pins[number-firstPin]
	shown := d.at(oldname) + " to " + path.Join(to.Path(), newname)
	if c.findsGone(target) {
		return failed("rename", shown, syscall.ESTALE)
	}
	moved, known := c.recall(d.object, oldname)
	if done, err := c.renamed(moved, known, target, newname); done {
		return failed("rename", shown, err)
	}
	return failed("rename", shown, c.tell("rename", shown, func() error { return c.rename(d.object, oldname, target, newname) }))
}

// findsGone reports whether a client notices that a directory is gone, as it may before it sends or
// checks a rename into that directory.
func (c *Client) findsGone(gone *object) bool {
	return gone.links == 0 && !c.opt.Local && c.forgot()
}

// renamed returns the result of a rename without a request, if the cache determines it.
func (c *Client) renamed(moved *object, known bool, to *object, newname string) (done bool, err error) {
	if !known {
		return false, nil
	}
	if moved == nil {
		return true, syscall.ENOENT
	}
	if moved.has(to) {
		return true, syscall.EINVAL
	}
	there, known := c.recall(to, newname)
	if !known || there == nil {
		return false, nil
	}
	err = mismatch(moved, there)
	return moved == there || err != nil, err
}

// inTheWay returns what a client knows at a name: it has the name in its cache, or an open file whose
// name may be cached with it.
func (c *Client) inTheWay(to *object, name string) *object {
	there, known := c.recall(to, name)
	if now := to.entries[name]; !known && c.opens[now] > 0 && c.forgot() {
		return now
	}
	return there
}

// replaces prepares the rename of moved to a name at which the cache has there.
func (c *Client) replaces(to *object, newname string, moved, there *object) error {
	if err := mismatch(moved, there); err != nil || !c.hides(there) {
		return err
	}
	if to.entries[newname] == nil {
		return syscall.ETXTBSY
	}
	c.hide(to, newname, there)
	return nil
}

func mismatch(moved, there *object) error {
	switch {
	case moved.mode.IsDir() && !there.mode.IsDir():
		return syscall.ENOTDIR
	case !moved.mode.IsDir() && there.mode.IsDir():
		return syscall.EISDIR
	}
	return nil
}

// rename is executed on the server. The client first looks up the source, and hides the cached target
// before any check that the cache is still right.
func (c *Client) rename(from *object, oldname string, to *object, newname string) error {
	if err := c.gone(from); err != nil {
		return err
	}
	source, into := c.server.change(from), c.server.change(to)
	moved := from.entries[oldname]
	taken, known := c.recall(from, oldname)
	if !known {
		taken = moved
		_, _ = c.find(from, oldname)
	}
	if err := firstOf(thereIs(taken), c.gone(to)); err != nil {
		return err
	}
	if there := c.inTheWay(to, newname); there != nil {
		if taken == there {
			return nil
		}
		if err := c.replaces(to, newname, taken, there); err != nil {
			return err
		}
	}
	if err := c.server.rename(from, oldname, to, newname, c); err != nil {
		return err
	}
	if from.entries[oldname] == moved {
		return nil // it was moved to itself
	}
	c.did(from, source, oldname, nil)
	if to == from {
		into = c.server.change(to)
	}
	c.did(to, into, newname, moved)
	return nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *dir) Unlink(name string) error { return d.remove("unlink", name, noDirectory) }
func (d *dir) Rmdir(name string) error  { return d.remove("rmdir", name, noFile) }

// remove removes what the client has cached, or looked up before the request. With version 4 the request
// has only the name, and removes whatever object has that name by then.
func (d *dir) remove(kind, name string, admit func(found *object) error) error {
	at, last, err := d.walk(name)
	if err != nil {
		return d.failed(kind, name, err)
	}
	c := d.client
	taken, known := c.recall(at, last)
	if !known {
		taken = at.entries[last]
	} else if err := firstOf(thereIs(taken), admit(taken)); err != nil {
		return d.failed(kind, name, err)
	}
	if taken != nil && c.silly[taken] == (hidden{at, last}) && !c.forgot() {
		return d.failed(kind, name, syscall.EBUSY) // it is removed when its last user closes it
	}
	return d.change(kind, name, taken, func(at *object, last string) (*object, error) {
		there := at.entries[last]
		if err := firstOf(thereIs(taken), thereIs(there), admit(taken)); err != nil {
			return nil, err
		}
		if c.hides(taken) {
			c.hide(at, last, taken)
			return nil, nil
		}
		if err := admit(there); err != nil && !c.opt.V4 {
			return nil, err
		}
		return nil, d.removed(at, last, there)
	})
}

func thereIs(found *object) error {
	if found == nil {
		return syscall.ENOENT
	}
	return nil
}

func (d *dir) removed(at *object, last string, there *object) error {
	if len(there.entries) > 0 {
		return syscall.ENOTEMPTY
	}
	delete(at.entries, last)
	d.client.server.remove(there, d.client)
	d.client.server.touch(at)
	return nil
}

func (d *dir) Touch() error {
	if d.searches {
		return failed("touch", d.path, syscall.EBADF)
	}
	return failed("touch", d.path, d.client.tell("touch", d.path, func() error { return d.client.touch(d.object) }))
}

func (d *dir) TouchFile(name string) error {
	at, last, err := d.walk(name)
	if err != nil {
		return d.failed("touch", name, err)
	}
	found, err := d.lookup(at, last, name)
	if err != nil {
		return d.failed("touch", name, err)
	}
	return d.failed("touch", name, d.client.tell("touch", d.at(name), func() error { return d.client.touch(found) }))
}

func (c *Client) touch(o *object) error {
	if err := c.gone(o); err != nil {
		return err
	}
	before := c.server.change(o)
	c.server.touch(o)
	c.told(o)
	if m := c.dirs[o]; m != nil && m.change == before && !c.opt.V4 {
		m.change, m.asked = c.server.change(o), time.Now() // no other client has changed it
	}
	return nil
}

func (d *dir) Stat() (info vfs.Info, err error) {
	err = d.client.ask("stat", d.path, func() error {
		info, err = d.client.describe(d.object)
		return err
	})
	return info, failed("stat", d.path, err)
}

// describe is executed on the server. A directory that this client removed has no links.
func (c *Client) describe(o *object) (vfs.Info, error) {
	if err := c.gone(o); errors.Is(err, syscall.ESTALE) {
		return vfs.Info{}, err
	}
	if o.mode.IsDir() {
		c.learn(o)
	}
	c.told(o)
	return o.info(), nil
}

func (d *dir) StatName(name string) (info vfs.Info, err error) {
	err = d.reach("stat", name, anything, func(o *object) error {
		info, err = d.client.describe(o)
		return err
	})
	return info, d.failed("stat", name, err)
}

// reach finds a name in the cache or on the server, and then requests the attributes of that object. If
// it is gone, the kernel resolves the name once more, on the server.
func (d *dir) reach(kind, name string, admit, use func(*object) error) error {
	at, last, err := d.walk(name)
	if err != nil {
		return err
	}
	found, known := d.client.recall(at, last)
	if known {
		if err := firstOf(thereIs(found), admit(found)); err != nil {
			return err
		}
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

func (d *dir) StatCached() (vfs.Info, error) {
	if d.object.links == 0 && d.client.forgot() {
		return vfs.Info{}, failed("stat", d.path, syscall.ESTALE)
	}
	return d.client.cached(d.object), nil
}

func (d *dir) Handle(name string) (vfs.Handle, error) {
	at, last, err := d.walk(name)
	if err != nil {
		return "", d.failed("handle", name, err)
	}
	found, err := d.lookup(at, last, name)
	if err != nil {
		return "", d.failed("handle", name, err)
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
		plus := d.client.forgot() // a listing may include the entries' attributes
		for _, name := range slices.Sorted(maps.Keys(d.object.entries)) {
			if plus {
				d.client.memory(d.object).names[name] = d.object.entries[name]
			}
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

// firstPin is larger than any descriptor of this process, so that real system calls on a pinned
// directory fail.
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
	if d.closed {
		return nil
	}
	d.closed = true
	if d.client.uses[d.object]--; d.client.uses[d.object] == 0 {
		delete(d.client.uses, d.object)
	}
	return nil
}
