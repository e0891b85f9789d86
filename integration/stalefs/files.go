//go:build linux

package stalefs

import (
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// GetAttr implements fuse.RawFileSystem. The kernel calls it when its cached attributes have
// expired, and when forced.
func (c *client) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	if err := c.reach(); err != nil {
		return fuse.ToStatus(err)
	}
	n := c.node(in.NodeId)
	a, _, err := c.revalidate(n)
	if err != nil {
		return fuse.ToStatus(err)
	}
	out.Attr = a.Attr
	out.SetTimeout(c.age(n))
	return fuse.OK
}

func (c *client) age(n *node) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return n.age
}

// SetAttr implements fuse.RawFileSystem.
func (c *client) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	n := c.node(in.NodeId)
	var a attributes
	var t turn
	wanted := *in // the request's memory is reused, and a zombie outlives it
	err := c.send(SetAttr, "", func() (err error) {
		a, t, err = c.server.setattr(n.object, &wanted)
		return err
	}, n.object)
	if err != nil {
		return fuse.ToStatus(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.did(n, t, "", belief{})
	c.refresh(n, a)
	out.Attr = a.Attr
	out.SetTimeout(n.age)
	return fuse.OK
}

// Open implements fuse.RawFileSystem.
func (c *client) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	n := c.node(in.NodeId)
	if status := c.opening(n); !status.Ok() {
		return status
	}
	c.opened(n, out)
	return fuse.OK
}

// opened returns the number of an open file.
func (c *client) opened(n *node, out *fuse.OpenOut) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n.opens++
	c.last++
	c.files[c.last] = n
	out.Fh, out.OpenFlags = c.last, fuse.FOPEN_DIRECT_IO
}

// opening asks the server for the attributes of the file to be opened (close-to-open), and makes
// the kernel do the same if they have changed.
func (c *client) opening(n *node) fuse.Status {
	if err := c.reach(); err != nil {
		return fuse.ToStatus(err)
	}
	_, changed, err := c.revalidate(n)
	if changed {
		const attributesOnly = -1
		c.kernel.InodeNotify(n.id, attributesOnly, 0)
	}
	return fuse.ToStatus(err)
}

// Flush implements fuse.RawFileSystem. Each close(2) waits for it, so a file counts as closed from
// then on: what the kernel calls release comes some time later.
func (c *client) Flush(_ <-chan struct{}, in *fuse.FlushIn) fuse.Status {
	c.closed(in.Fh)
	return fuse.OK
}

// Release implements fuse.RawFileSystem.
func (c *client) Release(_ <-chan struct{}, in *fuse.ReleaseIn) { c.closed(in.Fh) }

// Read implements fuse.RawFileSystem.
func (c *client) Read(_ <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	if err := c.reach(); err != nil {
		return nil, fuse.ToStatus(err)
	}
	n, err := c.server.read(c.node(in.NodeId).object, buf, int64(in.Offset)) //nolint:gosec // offsets fit
	if err != nil {
		return nil, fuse.ToStatus(err)
	}
	return fuse.ReadResultData(buf[:n]), fuse.OK
}

// Write implements fuse.RawFileSystem.
func (c *client) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	n := c.node(in.NodeId)
	sent := append([]byte(nil), data...) // a zombie outlives the request
	offset := int64(in.Offset)           //nolint:gosec // offsets fit
	written := 0
	err := c.send(Write, "", func() (err error) {
		written, err = c.server.write(n.object, sent, offset)
		return err
	}, n.object)
	if err != nil {
		return 0, fuse.ToStatus(err)
	}
	return uint32(written), fuse.OK //nolint:gosec // no more than was sent
}

// OpenDir implements fuse.RawFileSystem.
func (c *client) OpenDir(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if status := c.opening(c.node(in.NodeId)); !status.Ok() {
		return status
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	out.Fh = c.last
	return fuse.OK
}

// ReadDir implements fuse.RawFileSystem. It returns the entries at the first call.
func (c *client) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	entries, err := c.listing(in)
	if err != nil {
		return fuse.ToStatus(err)
	}
	for i := in.Offset; i < uint64(len(entries)); i++ {
		e := entries[i]
		e.Off = i + 1
		if !out.AddDirEntry(e) {
			break
		}
	}
	return fuse.OK
}

func (c *client) listing(in *fuse.ReadIn) ([]fuse.DirEntry, error) {
	c.mu.Lock()
	listed, again := c.listings[in.Fh]
	c.mu.Unlock()
	if again && in.Offset > 0 {
		return listed, nil
	}
	if err := c.reach(); err != nil {
		return nil, err
	}
	listed, err := c.server.list(c.node(in.NodeId).object)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listings[in.Fh] = listed
	return listed, nil
}

// ReleaseDir implements fuse.RawFileSystem.
func (c *client) ReleaseDir(in *fuse.ReleaseIn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.listings, in.Fh)
}

// The server writes synchronously and does not check permissions.

// Fsync implements fuse.RawFileSystem.
func (c *client) Fsync(<-chan struct{}, *fuse.FsyncIn) fuse.Status { return fuse.ToStatus(c.reach()) }

// FsyncDir implements fuse.RawFileSystem.
func (c *client) FsyncDir(<-chan struct{}, *fuse.FsyncIn) fuse.Status { return fuse.OK }

// Access implements fuse.RawFileSystem.
func (c *client) Access(<-chan struct{}, *fuse.AccessIn) fuse.Status { return fuse.OK }

// StatFs implements fuse.RawFileSystem. The kernel adds the type.
func (c *client) StatFs(<-chan struct{}, *fuse.InHeader, *fuse.StatfsOut) fuse.Status { return fuse.OK }
