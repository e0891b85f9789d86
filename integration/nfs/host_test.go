package nfs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/vfs"
)

// host is one of the lab's NFS clients. As a vfs.FS it is the file system as that
// host sees it: calls go through its mount, its caches and its connection.
type host struct {
	name    string
	version string // of NFS
	mount   string // where the share is mounted
}

// hosts are the three that every test may use, and must leave as they were.
func hosts() []host {
	return []host{{"h1", "4.2", "/shared"}, {"h2", "4.1", "/shared"}, {"h3", "3", "/shared"}}
}

// eachVersion runs a test once per NFS version, on the host that speaks it.
// Others are the two remaining hosts.
func eachVersion(t *testing.T, run func(t *testing.T, h host, others []host)) {
	needLab(t)
	all := hosts()
	for i, h := range all {
		t.Run("v"+h.version, func(t *testing.T) {
			run(t, h, []host{all[(i+1)%len(all)], all[(i+2)%len(all)]})
		})
	}
}

// eachVersionAtLength is eachVersion for what takes long: a short run does it with
// the first version only.
func eachVersionAtLength(t *testing.T, run func(t *testing.T, h host, others []host)) {
	eachVersion(t, func(t *testing.T, h host, others []host) {
		if testing.Short() && h != hosts()[0] {
			t.Skip("takes long")
		}
		run(t, h, others)
	})
}

// addHost boots a host for one test, with mount options besides the version's.
func addHost(t testing.TB, name, version, options string) host {
	t.Helper()
	lab(t, "host", "add", name, "vers="+version+","+options)
	t.Cleanup(func() { lab(t, "host", "del", name) })
	return host{name, version, "/shared"}
}

var _ vfs.FS = host{}

// OpenDir implements vfs.FS. A descriptor belongs to a mount, so what is done
// through it is done by this host's client, whichever process does it.
func (h host) OpenDir(path string) (vfs.Dir, error) {
	var dir vfs.Dir
	err := h.inside(func() (err error) {
		dir, err = vfs.OS{}.OpenDir(path)
		return err
	})
	return dir, err
}

// inside runs f on a thread that sees the host's file systems.
func (h host) inside(f func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with this goroutine
		err := h.enter()
		if err == nil {
			err = f()
		}
		result <- err
	}()
	return <-result
}

// enter moves the calling thread into the host's mount namespace. A thread that
// shares its root directory with others may not (setns(2)).
func (h host) enter() error {
	pinned, err := h.state("namespace")
	if err != nil {
		return err
	}
	namespace, err := os.Open(pinned)
	if err != nil {
		return err
	}
	defer namespace.Close()
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("unshare root directory: %w", err)
	}
	return unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNS)
}

// state is what the lab notes about a host.
func (h host) state(file string) (string, error) {
	text, err := os.ReadFile(filepath.Join("/run/lab/hosts", h.name, file))
	return strings.TrimSpace(string(text)), err
}

// identity is that of this process, as it would be on the host.
func (h host) identity(t testing.TB) process.Identity {
	t.Helper()
	id, err := process.Self()
	require.NoError(t, err)
	id.Host, id.Machine = h.name, "machine-of-"+h.name
	id.Boot, err = h.state("boot-id")
	require.NoError(t, err)
	return id
}
