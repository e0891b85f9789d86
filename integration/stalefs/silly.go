//go:build linux

package stalefs

import (
	"fmt"
	"syscall"
)

// inUse is the node that this client believes to have a name, if it has it open.
func (c *client) inUse(dir *node, name string) *node {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := dir.names[name].node; n != nil && n.opens > 0 {
		return n
	}
	return nil
}

// sillyRename gives a file that is to be removed while it is open another name,
// until it is closed: an NFS server does not know what is open. The client that
// did so refuses to remove that name.
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

// closed notes that a file was closed, and removes it if that was put off.
func (c *client) closed(file uint64) {
	dir, name := c.lastUse(file)
	if dir == nil {
		return
	}
	if c.reach() == nil {
		_, _ = c.server.remove(dir, name, 0) // it may be gone already
	}
	c.server.drop(dir)
}

// lastUse takes an open file off the books, and tells what is to be removed now.
func (c *client) lastUse(file uint64) (dir *object, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.files[file]
	if n == nil {
		return nil, "" // closed before
	}
	delete(c.files, file)
	if n.opens--; n.opens > 0 {
		return nil, ""
	}
	dir, name = n.sillyIn, n.silly
	n.sillyIn, n.silly = nil, ""
	return dir, name
}
