//go:build linux

package stalefs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// Options control how a mount behaves.
type Options struct {
	// MinAge and MaxAge limit how long attributes and names are cached: 3 s and 60 s if 0.
	MinAge, MaxAge time.Duration
	// Soft is how long a call waits for an unreachable server before it fails with ETIMEDOUT,
	// without having been sent. 0 is a hard mount, which waits forever.
	Soft time.Duration
}

// Mount is the NFS client of one host.
type Mount struct {
	path   string
	client *client
	ended  chan struct{} // closed after the reply to the last request
}

// FileSystem is the type of the mounts, as in /proc/self/mountinfo.
const FileSystem = "fuse.stalefs"

// Mount mounts the server's directory at path, which must be an empty directory.
func (s *Server) Mount(path string, opt Options) (*Mount, error) {
	device, err := attach(path)
	if err != nil {
		return nil, err
	}
	c := newClient(s, opt)
	served, err := fuse.NewServer(c, fmt.Sprintf("/dev/fd/%d", device), &fuse.MountOptions{DisableXAttrs: true, DisableReadDirPlus: true})
	if err != nil {
		unix.Close(device)
		return nil, errors.Join(fmt.Errorf("mount %s: %w", path, err), unix.Unmount(path, unix.MNT_DETACH))
	}
	m := &Mount{path: path, client: c, ended: make(chan struct{})}
	go func() {
		defer close(m.ended)
		served.Serve()
	}()
	if err := m.refusePolls(); err != nil {
		return nil, errors.Join(fmt.Errorf("mount %s: %w", path, err), m.Unmount())
	}
	return m, nil
}

// attach mounts directly, because fusermount is not always installed, and with a descriptor that no
// child inherits. An inherited descriptor would keep the filesystem of a dead parent alive, and the
// child might wait for it forever.
func attach(path string) (device int, err error) {
	device, err = unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open /dev/fuse: %w", err)
	}
	data := fmt.Sprintf("fd=%d,rootmode=40000,user_id=%d,group_id=%d,allow_other", device, os.Geteuid(), os.Getegid())
	source := fmt.Sprintf("stalefs-%d", os.Getpid())
	if err := unix.Mount(source, path, FileSystem, unix.MS_NOSUID|unix.MS_NODEV, data); err != nil {
		unix.Close(device)
		return -1, fmt.Errorf("mount %s: %w", path, err)
	}
	return device, nil
}

// refusePolls makes the kernel learn that files here cannot be polled. Otherwise the Go runtime
// would ask in a way that keeps this process from replying. The library answers for a file of this
// name.
func (m *Mount) refusePolls() error {
	fd, err := unix.Open(filepath.Join(m.path, ".go-fuse-epoll-hack"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0) //nolint:gosec // a small number
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// Path is the mount point.
func (m *Mount) Path() string { return m.path }

// Inject sets the faults of the mount's calls, nil for none, and restarts the counter.
func (m *Mount) Inject(inject Injector) {
	m.client.mu.Lock()
	defer m.client.mu.Unlock()
	m.client.inject, m.client.calls = inject, 0
}

// Calls returns how many modifying calls were sent since the last Inject.
func (m *Mount) Calls() int {
	m.client.mu.Lock()
	defer m.client.mu.Unlock()
	return m.client.calls
}

// Cut disconnects the mount from the server until Heal.
func (m *Mount) Cut() { m.client.path.close() }

// Heal ends a Cut.
func (m *Mount) Heal() { m.client.path.open() }

// Unmount heals the mount and unmounts it, unless it is still in use (EBUSY).
func (m *Mount) Unmount() error {
	m.Inject(nil)
	m.Heal()
	if err := unix.Unmount(m.path, 0); err != nil {
		return fmt.Errorf("unmount %s: %w", m.path, err)
	}
	<-m.ended
	return nil
}

// client is a mount as the kernel sees it.
type client struct {
	fuse.RawFileSystem
	server *Server
	opt    Options
	kernel *fuse.Server
	path   gate

	mu       sync.Mutex
	inject   Injector
	calls    int
	nodes    map[uint64]*node
	byObject map[*object]*node
	files    map[uint64]*node // open files
	listings map[uint64][]fuse.DirEntry
	last     uint64 // the last number assigned to a node, file or listing
}

func newClient(s *Server, opt Options) *client {
	const acdirmin, acdirmax = 3 * time.Second, time.Minute // nfs(5)
	if opt.MinAge == 0 {
		opt.MinAge = acdirmin
	}
	if opt.MaxAge == 0 {
		opt.MaxAge = acdirmax
	}
	s.keep(s.root)
	root := &node{id: fuse.FUSE_ROOT_ID, object: s.root, age: opt.MinAge, names: map[string]belief{}}
	return &client{
		RawFileSystem: fuse.NewDefaultRawFileSystem(), server: s, opt: opt, last: root.id,
		nodes:    map[uint64]*node{root.id: root},
		byObject: map[*object]*node{s.root: root},
		files:    map[uint64]*node{},
		listings: map[uint64][]fuse.DirEntry{},
	}
}

// Init implements fuse.RawFileSystem.
func (c *client) Init(kernel *fuse.Server) { c.kernel = kernel }

// OnUnmount implements fuse.RawFileSystem.
func (c *client) OnUnmount() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.nodes {
		c.server.drop(n.object)
	}
	c.nodes, c.byObject = nil, nil
}
