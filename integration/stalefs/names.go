//go:build linux

package stalefs

import (
	"errors"
	"fmt"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// Lookup implements fuse.RawFileSystem. A missing name is also an answer: node 0.
func (c *client) Lookup(_ <-chan struct{}, in *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	dir := c.node(in.NodeId)
	if c.recall(dir, name, out) {
		return fuse.OK
	}
	if err := c.reach(); err != nil {
		return fuse.ToStatus(err)
	}
	e, err := c.server.lookup(dir.object, name)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		c.remember(dir, name, belief{node: c.adopt(e, out), change: e.dir.after})
	case errors.Is(err, syscall.ENOENT):
		c.remember(dir, name, belief{change: e.dir.after})
	default:
		return fuse.ToStatus(err)
	}
	out.SetEntryTimeout(dir.age)
	return fuse.OK
}

// Mkdir implements fuse.RawFileSystem.
func (c *client) Mkdir(_ <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	mode := in.Mode // the request's memory is reused, and a zombie outlives it
	_, err := c.make(Mkdir, c.node(in.NodeId), name, out, func(dir *object) (entry, error) {
		return c.server.mkdir(dir, name, mode)
	})
	return fuse.ToStatus(err)
}

// Create implements fuse.RawFileSystem.
func (c *client) Create(_ <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	flags, mode := in.Flags, in.Mode
	n, err := c.make(Create, c.node(in.NodeId), name, &out.EntryOut, func(dir *object) (entry, error) {
		return c.server.create(dir, name, flags, mode)
	})
	if err != nil {
		return fuse.ToStatus(err)
	}
	c.opened(n, &out.OpenOut)
	return fuse.OK
}

// make creates an entry and caches it.
func (c *client) make(kind Kind, dir *node, name string, out *fuse.EntryOut, call func(*object) (entry, error)) (*node, error) {
	r := reply{server: c.server}
	err := c.send(kind, name, func() error { return r.take(call(dir.object)) }, dir.object)
	e := r.close(err)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.adopt(e, out)
	c.did(dir, e.dir, name, belief{node: n})
	out.SetEntryTimeout(dir.age)
	return n, nil
}

// reply holds the handle from the reply to a call that creates an object. It is dropped if the
// reply is lost.
type reply struct {
	server *Server

	mu     sync.Mutex
	got    entry
	closed bool
}

// take receives a reply. The last of several counts.
func (r *reply) take(e entry, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		return err
	}
	if r.closed {
		r.server.drop(e.object)
		return nil
	}
	if r.got.object != nil {
		r.server.drop(r.got.object)
	}
	r.got = e
	return nil
}

// close returns the received entry, and drops its handle if the caller receives an error.
func (r *reply) close(err error) entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if err != nil && r.got.object != nil {
		r.server.drop(r.got.object)
	}
	return r.got
}

// Unlink implements fuse.RawFileSystem.
func (c *client) Unlink(_ <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	dir := c.node(in.NodeId)
	if n := c.inUse(dir, name); n != nil {
		return fuse.ToStatus(c.sillyRename(dir, name, n))
	}
	return c.remove(Remove, dir, name, 0)
}

// Rmdir implements fuse.RawFileSystem.
func (c *client) Rmdir(_ <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	return c.remove(Rmdir, c.node(in.NodeId), name, unix.AT_REMOVEDIR)
}

func (c *client) remove(kind Kind, dir *node, name string, flags int) fuse.Status {
	var t turn
	err := c.send(kind, name, func() (err error) {
		t, err = c.server.remove(dir.object, name, flags)
		return err
	}, dir.object)
	if err != nil {
		return c.missed(err, dir, name)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.did(dir, t, name, belief{})
	return fuse.OK
}

// missed returns an error's status. If the entry is missing, it also drops it from the cache.
func (c *client) missed(err error, dir *node, name string) fuse.Status {
	if errors.Is(err, syscall.ENOENT) {
		c.forget(dir, name)
	}
	return fuse.ToStatus(err)
}

// Rename implements fuse.RawFileSystem.
func (c *client) Rename(_ <-chan struct{}, in *fuse.RenameIn, oldname, newname string) fuse.Status {
	if in.Flags != 0 {
		return fuse.EINVAL // NFS has no flags
	}
	from, to := c.node(in.NodeId), c.node(in.Newdir)
	var source, target turn
	err := c.send(Rename, oldname, func() (err error) {
		source, target, err = c.server.rename(from.object, oldname, to.object, newname)
		return err
	}, from.object, to.object)
	if err != nil {
		return c.missed(err, from, oldname)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.renamed(from, oldname, source, to, newname, target)
	return fuse.OK
}

func (c *client) renamed(from *node, oldname string, source turn, to *node, newname string, target turn) {
	moved := from.names[oldname].node
	c.did(from, source, oldname, belief{})
	if moved == nil {
		delete(to.names, newname)
		return
	}
	c.did(to, target, newname, belief{node: moved})
}

// inUse returns the node that this client has cached under a name, if it is open.
func (c *client) inUse(dir *node, name string) *node {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := dir.names[name].node; n != nil && n.opens > 0 {
		return n
	}
	return nil
}

// sillyRename gives a file that is removed while open another name until it is closed, because an
// NFS server does not know which files are open. The client that did so refuses to remove the new
// name.
func (c *client) sillyRename(dir *node, name string, n *node) error {
	c.mu.Lock()
	again := n.silly == name
	c.last++
	silly := fmt.Sprintf(".nfs%012x%08x", n.object.ino, c.last)
	c.mu.Unlock()
	if again {
		return syscall.EBUSY
	}
	var t turn
	err := c.send(Rename, name, func() (err error) {
		t, _, err = c.server.rename(dir.object, name, dir.object, silly)
		return err
	}, dir.object)
	if err != nil {
		return err
	}
	c.server.keep(dir.object)
	c.mu.Lock()
	defer c.mu.Unlock()
	n.silly, n.sillyIn = silly, dir.object
	c.did(dir, t, name, belief{})
	delete(dir.names, silly)
	return nil
}

// closed records that a file was closed, and removes it if its removal was deferred.
func (c *client) closed(file uint64) {
	dir, name := c.lastUse(file)
	if dir == nil {
		return
	}
	if c.reach() == nil {
		_, _ = c.server.remove(dir, name, 0) // it may already be gone
	}
	c.server.drop(dir)
}

// lastUse forgets an open file, and returns the name to remove if it was the last use.
func (c *client) lastUse(file uint64) (dir *object, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.files[file]
	if n == nil {
		return nil, "" // already closed
	}
	delete(c.files, file)
	if n.opens--; n.opens > 0 {
		return nil, ""
	}
	dir, name = n.sillyIn, n.silly
	n.sillyIn, n.silly = nil, ""
	return dir, name
}
