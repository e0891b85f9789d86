//go:build linux

package stalefs

import (
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// node is an object as one mount knows it. The kernel refers to it by its number.
type node struct {
	id      uint64
	object  *object
	known   attributes    // from the server's last reply
	asked   time.Time     // time of that reply
	age     time.Duration // how long they remain valid
	names   map[string]belief
	lookups uint64 // how often the kernel received the number
	opens   int
	stale   bool   // the server has reported that the object is gone
	silly   string // its name in sillyIn after it was removed while open
	sillyIn *object
}

// belief is what a mount has cached about a name in a directory.
type belief struct {
	node   *node     // nil if the name is absent
	change uint64    // the directory's change attribute when this was true
	until  time.Time // after this, check whether the directory still has it
}

// node returns the node with the kernel's number.
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
	n.stale = true // it must not be found by name
	delete(c.nodes, id)
	delete(c.byObject, n.object)
	c.server.drop(n.object)
}

// adopt returns the node for an entry from the server, takes over the entry's handle, and passes
// the node to the kernel. A known node keeps its cached attributes until they expire: the kernel,
// unlike an NFS client, looks names up before a rename, and if that renewed the attributes, they
// would never expire. The caller holds the lock.
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

// tell passes a node to the kernel with its cached attributes.
func (c *client) tell(n *node, out *fuse.EntryOut) {
	n.lookups++
	out.NodeId, out.Generation, out.Attr = n.id, 1, n.known.Attr
	out.SetAttrTimeout(max(n.age-time.Since(n.asked), 0))
}

// refresh stores new attributes and reports whether they have changed. Each time they have not,
// they stay valid for longer.
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

// remember caches the server's answer about a name.
func (c *client) remember(dir *node, name string, b belief) belief {
	b.until = time.Now().Add(dir.age)
	dir.names[name] = b
	return b
}

// recall answers from the cache if it is valid.
//
// The kernel looks up a name that it has cached and that is still valid only if it needs a reliable
// answer. An NFS client then asks the server about a name that is present, but still trusts that a
// name is absent until a call needs it to be absent.
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

// unchanged asks the server whether a directory is unchanged.
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

// did updates a directory's cache after a change by this client: what was valid before the change
// remains valid, except for one name.
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

// forget drops a name from the cache after a call found it missing.
func (c *client) forget(dir *node, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(dir.names, name)
}

// revalidate asks the server for a node's attributes. If a directory has changed, it makes the
// kernel drop the names in it before it returns, so that later lookups find the current ones.
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
	for name, b := range outdated { // not earlier: another call may be waiting for the same
		if n.names[name] == b {
			delete(n.names, name)
		}
	}
	return a, changed, nil
}
