package nfs_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/internal/testkit/actor"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/vfs"
)

// host is one of the lab's NFS clients. As a vfs.FS it is the filesystem as that host sees it:
// calls go through its mount, its caches and its connection.
type host struct {
	name    string
	version string // of NFS
	mount   string // mount point of the share
}

// hosts are the three that every test may use, and must leave unchanged.
func hosts() []host {
	return []host{{"h1", "4.2", "/shared"}, {"h2", "4.1", "/shared"}, {"h3", "3", "/shared"}}
}

// eachVersion runs a test once for each version of NFS, on the host that uses it. The other two
// hosts are passed as others.
func eachVersion(t *testing.T, run func(t *testing.T, h host, others []host)) {
	needLab(t)
	all := hosts()
	for i, h := range all {
		t.Run("v"+h.version, func(t *testing.T) {
			run(t, h, []host{all[(i+1)%len(all)], all[(i+2)%len(all)]})
		})
	}
}

// eachVersionAtLength is eachVersion for slow tests: a short run covers only the first version.
func eachVersionAtLength(t *testing.T, run func(t *testing.T, h host, others []host)) {
	eachVersion(t, func(t *testing.T, h host, others []host) {
		if testing.Short() && h != hosts()[0] {
			t.Skip("takes long")
		}
		run(t, h, others)
	})
}

// addHost boots a host for one test, with mount options in addition to the version.
func addHost(t testing.TB, name, version, options string) host {
	t.Helper()
	lab(t, "host", "add", name, "vers="+version+","+options)
	t.Cleanup(func() { lab(t, "host", "del", name) })
	return host{name, version, "/shared"}
}

var _ vfs.FS = host{}

// OpenDir implements vfs.FS. A descriptor belongs to a mount, so all calls through it go to this
// host's client, whichever process makes them.
func (h host) OpenDir(path string) (vfs.Dir, error) {
	var dir vfs.Dir
	err := h.inside(func() (err error) {
		dir, err = vfs.OS{}.OpenDir(path)
		return err
	})
	return dir, err
}

// inside runs f on a thread that sees the host's filesystems.
func (h host) inside(f func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		if unix.Gettid() == os.Getpid() {
			// Use any thread but the first. The first would keep the host's mounts until the
			// process ends, when their server no longer answers. While this goroutine holds it, the
			// new goroutine gets another thread.
			result <- h.inside(f)
			runtime.UnlockOSThread()
			return
		}
		err := h.enter()
		if err == nil {
			err = f()
		}
		result <- err
	}()
	return <-result
}

// enter moves the calling thread into the host's mount namespace. A thread that shares its root
// directory with other threads may not enter one (setns(2)).
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

// state reads one of the lab's files about a host.
func (h host) state(file string) (string, error) {
	text, err := os.ReadFile(filepath.Join("/run/lab/hosts", h.name, file))
	return strings.TrimSpace(string(text)), err
}

// identity is the identity that this process would have on the host.
func (h host) identity(t testing.TB) process.Identity {
	t.Helper()
	id, err := process.Self()
	require.NoError(t, err)
	id.Host, id.Machine = h.name, "machine-of-"+h.name
	id.Boot, err = h.state("boot-id")
	require.NoError(t, err)
	return id
}

// The lab's work on one host must not affect other hosts, or tests measure the lab. If the server's
// network address changed when hosts come and go, the other hosts would lose it for up to a minute.
// Rule: none (the lab)
func TestServerKeepsItsAddressWhoeverComes(t *testing.T) {
	needLab(t)
	address := func() string {
		text, err := os.ReadFile("/sys/class/net/br0/address")
		require.NoError(t, err)
		return string(text)
	}
	before := address()
	lab(t, "ip", "link", "add", "lowest", "address", "00:00:00:00:00:01", "type", "veth", "peer", "name", "end")
	t.Cleanup(func() { lab(t, "ip", "link", "del", "lowest") })
	lab(t, "ip", "link", "set", "lowest", "master", "br0", "up")
	require.Equal(t, before, address())
}

// A crashing host does not disconnect from the server: its requests are aborted, and its mounts
// stay, even if no process uses them at that moment.
// Rule: none (the lab)
func TestAbortedMountsStay(t *testing.T) {
	needLab(t)
	h := addHost(t, "idle", "4.2", "hard")
	namespace, err := os.ReadFile("/run/lab/hosts/idle/namespace")
	require.NoError(t, err)
	lab(t, "lab-abort", strings.TrimSpace(string(namespace)), h.mount)
	out, err := exec.Command("on", h.name, "stat", "-f", "-c", "%T", h.mount).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, "nfs\n", string(out))
}

func TestMain(m *testing.M) {
	actor.Play(map[string]func() error{"actor": playActor, "worker": playWorker})
	if inLab() {
		if err := addHosts(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func inLab() bool { return os.Getenv("MULTILOCK_LAB") == "1" }

// needLab skips a test outside the lab.
func needLab(t testing.TB) {
	t.Helper()
	if !inLab() {
		t.Skip("needs a real NFS cluster: integration/nfs/run boots one and runs this in it")
	}
}

// addHosts boots the hosts that all tests share.
func addHosts() error {
	for _, h := range hosts() {
		if err := tool("host", "add", h.name, "vers="+h.version+",hard"); err != nil {
			return err
		}
	}
	return nil
}
