//go:build linux

package stalefs_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/stalefs"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/vfs"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// watchdog ends a test that hangs. No result depends on its length.
const watchdog = 2 * time.Minute

// cluster is a server and its hosts.
type cluster struct {
	server *stalefs.Server
	stored string // the directory on the server's disk
	hosts  []*host
}

// host is a simulated host: a mount, with an identity of its own.
type host struct {
	*stalefs.Mount
	name string
}

// newCluster mounts a new server's directory on n hosts.
func newCluster(t testing.TB, n int, opt stalefs.Options) *cluster {
	t.Helper()
	if err := unusable(); err != nil {
		t.Skip(err)
	}
	c := &cluster{stored: t.TempDir()}
	var err error
	c.server, err = stalefs.Serve(c.stored)
	require.NoError(t, err)
	t.Cleanup(c.server.Close)
	for i := range n {
		c.add(t, fmt.Sprintf("host%d", i+1), opt)
	}
	return c
}

// add mounts the directory on one more host.
func (c *cluster) add(t testing.TB, name string, opt stalefs.Options) *host {
	t.Helper()
	mount, err := c.server.Mount(t.TempDir(), opt)
	require.NoError(t, err)
	h := &host{mount, name}
	c.hosts = append(c.hosts, h)
	t.Cleanup(func() {
		c.server.Start()
		// A call that was given up may still be in progress.
		require.Eventually(t, func() bool { return h.Unmount() == nil }, time.Minute, 5*time.Millisecond)
	})
	return h
}

// identity is the identity that this process would have on the host.
func (h *host) identity(t testing.TB) process.Identity {
	t.Helper()
	id, err := locktest.SelfOn(h.name)
	require.NoError(t, err)
	return id
}

// open opens a place's source as a process on the host does, through a filesystem.
func (c *cluster) open(t testing.TB, h *host, place string, through vfs.FS) *fslock.Source {
	t.Helper()
	src, err := fslock.Open(fslock.Options{Base: h.on(place), FS: through, Self: h.identity(t)})
	require.NoError(t, err)
	return src
}

// dir opens a directory on the host.
func (h *host) dir(t testing.TB, elements ...string) vfs.Dir {
	t.Helper()
	dir, err := vfs.OS{}.OpenDir(h.on(elements...))
	require.NoError(t, err)
	t.Cleanup(func() { _ = dir.Close() })
	return dir
}

// on returns a path as the host sees it.
func (h *host) on(elements ...string) string {
	return filepath.Join(append([]string{h.Path()}, elements...)...)
}

// there returns a path on the server's own disk.
func (c *cluster) there(elements ...string) string {
	return filepath.Join(append([]string{c.stored}, elements...)...)
}

// names lists a directory on the server's disk.
func (c *cluster) names(t testing.TB, elements ...string) []string {
	t.Helper()
	entries, err := os.ReadDir(c.there(elements...))
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// within returns a context with the watchdog's timeout.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	t.Cleanup(cancel)
	return ctx
}

// asNFS makes the lock treat a filesystem as NFS rather than FUSE. On NFS a breaker moves the lock
// file aside before it removes it, and a holder mostly relies on the times of the directory.
func asNFS(through vfs.FS) vfs.FS {
	nfs := faultfs.New(through, nil)
	nfs.Describe(vfs.FileSystem{Type: "nfs", NFS: true})
	return nfs
}
