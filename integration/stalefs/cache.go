//go:build linux

package stalefs

import (
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// node is an object as one mount knows it. The kernel calls it by its number.
type node struct {
	id      uint64
	object  *object
	known   attributes    // as the server told them last
	asked   time.Time     // when that was
	age     time.Duration // for how long they are believed
	names   map[string]belief
	lookups uint64 // how often the kernel was told the number
	opens   int
	stale   bool   // the server has said that the object is gone
	silly   string // its name after it was removed while it was open, in sillyIn
	sillyIn *object
}

// belief is what a mount remembers about a name in a directory.
type belief struct {
	node   *node     // nil: there is no such name
	change uint64    // the directory's change attribute with which that was true
	until  time.Time // when the directory must be asked whether it still has it
}

// node finds what the kernel means by a number.
func (c *client) node(id uint64) *node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nodes[id]
}

// Forget implements fuse.RawFileSystem.
func (c *client) Forget(id, lookups uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[id]
	if n == nil || n.id == fuse.FUSE_ROOT_ID {
		return
	}
	if n.lookups -= min(lookups, n.lookups); n.lookups > 0 {
		return
	}
	n.stale = true // nobody shall find it through a name
	delete(c.nodes, id)
	delete(c.byObject, n.object)
	c.server.drop(n.object)
}

// adopt makes the server's answer a node, which takes over the entry's handle, and
// tells the kernel about it. Of one that is known the remembered attributes stay:
// the kernel looks names up before a rename, which an NFS client does not do, and
// they would never grow old. The caller holds the lock.
func (c *client) adopt(e entry, out *fuse.EntryOut) *node {
	n := c.byObject[e.object]
	if n == nil {
		c.last++
		n = &node{id: c.last, object: e.object, age: c.opt.MinAge, names: map[string]belief{}}
		c.nodes[n.id], c.byObject[e.object] = n, n
	} else {
		c.server.drop(e.object)
	}
	if time.Since(n.asked) > n.age {
		c.refresh(n, e.attributes)
	}
	c.tell(n, out)
	return n
}

// tell answers the kernel with a node as it is known.
func (c *client) tell(n *node, out *fuse.EntryOut) {
	n.lookups++
	out.NodeId, out.Generation, out.Attr = n.id, 1, n.known.Attr
	out.SetAttrTimeout(max(n.age-time.Since(n.asked), 0))
}

// refresh takes new attributes in and reports whether they have changed. They are
// believed for longer each time that they have not.
func (c *client) refresh(n *node, a attributes) (changed bool) {
	changed = a.change != n.known.change
	switch {
	case changed:
		n.age = c.opt.MinAge
	case time.Since(n.asked) > n.age:
		n.age = min(2*n.age, c.opt.MaxAge)
	}
	n.known, n.asked = a, time.Now()
	return changed
}

// remember notes what the server said about a name.
func (c *client) remember(dir *node, name string, b belief) belief {
	b.until = time.Now().Add(dir.age)
	dir.names[name] = b
	return b
}

// recall answers from memory, if there is something to be trusted.
//
// The kernel asks for a name in time only if it wants to know for sure: it has
// been told, and has a memory of its own. Of those an NFS client sends to the
// server what is present; what is absent it believes in any case, up to the call
// that needs it to be absent.
func (c *client) recall(dir *node, name string, out *fuse.EntryOut) bool {
	c.mu.Lock()
	b, known := dir.names[name]
	c.mu.Unlock()
	if !known {
		return false
	}
	inTime := time.Now().Before(b.until)
	if inTime && b.node != nil {
		return false
	}
	if !inTime && !c.unchanged(dir, b) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if b.node != nil && b.node.stale {
		return false
	}
	if !inTime {
		b = c.remember(dir, name, b)
	}
	if b.node != nil {
		c.tell(b.node, out)
	}
	out.SetEntryTimeout(max(time.Until(b.until), 0))
	return true
}

// unchanged asks the server whether a directory is as it was.
func (c *client) unchanged(dir *node, b belief) bool {
	if c.reach() != nil {
		return false
	}
	a, err := c.server.getattr(dir.object)
	if err != nil || a.change != b.change {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refresh(dir, a)
	return true
}

// did brings a directory's memory up to date with a change of this client's own:
// what was true before it is true after it, but for one name.
func (c *client) did(dir *node, t turn, name string, b belief) {
	for other, remembered := range dir.names {
		if remembered.change == t.before {
			remembered.change = t.after
			dir.names[other] = remembered
		}
	}
	if name != "" {
		b.change = t.after
		c.remember(dir, name, b)
	}
}

// forget drops what is remembered about a name after a call found it missing.
func (c *client) forget(dir *node, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(dir.names, name)
}

// revalidate asks the server for a node's attributes. If a directory has changed,
// the kernel is made to forget the names in it before this returns: whoever comes
// after it finds what is there now.
func (c *client) revalidate(n *node) (attributes, bool, error) {
	a, err := c.server.getattr(n.object)
	c.mu.Lock()
	if err != nil {
		n.stale = true
		c.mu.Unlock()
		return attributes{}, false, err
	}
	changed := c.refresh(n, a)
	outdated := map[string]belief{}
	for name, b := range n.names {
		if b.change != a.change {
			outdated[name] = b
		}
	}
	c.mu.Unlock()
	for name := range outdated {
		c.kernel.EntryNotify(n.id, name)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, b := range outdated { // not before: another one may be waiting for the same
		if n.names[name] == b {
			delete(n.names, name)
		}
	}
	return a, changed, nil
}
