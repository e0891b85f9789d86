package nfs_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/testkit/worker"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/fslock/fslocktest"
	"github.com/multilock/go/multilock/locktest"
)

// Paths at which the lab's test command provides Python and a script that locks like the Python
// class MultiLock.
const (
	pythonHome = "/guest/python/usr"
	peerScript = "/guest/multilock_peer.py"
)

// newPython starts a Python peer on a host. See multilock/fslock/testdata/multilock_peer.py for its
// commands.
func newPython(t *testing.T, h host, p place) *locktest.Script {
	t.Helper()
	libraries := pythonHome + "/lib/x86_64-linux-gnu"
	return locktest.StartScript(t, exec.Command("on", h.name, "env", "PYTHONHOME="+pythonHome, "PYTHONDONTWRITEBYTECODE=1",
		"LD_LIBRARY_PATH="+libraries+":/guest/python/lib/x86_64-linux-gnu",
		pythonHome+"/bin/python3.11", peerScript, p.on(h, fslock.DefaultGroup)))
}

// besides opens a place's locks for use together with Python peers.
func (p place) besides(t *testing.T, h host) *fslock.Source {
	return fslocktest.Open(t, fslock.Options{Base: p.on(h), FS: h, Self: h.identity(t), LegacyPeers: true})
}

// withPython runs a test with the Python peer on the v3 host, and on the v4.1 host. The Go
// processes run on the other two hosts.
func withPython(t *testing.T, run func(t *testing.T, peer host, ours []host)) {
	needCommand(t)
	if _, err := os.Stat(pythonHome); err != nil {
		t.Skip("no python3 in this machine: the lab could not get Debian's packages for it")
	}
	all := hosts()
	t.Run("v3", func(t *testing.T) { run(t, all[2], all[:2]) })
	if !testing.Short() {
		t.Run("v4.1", func(t *testing.T) { run(t, all[1], []host{all[2], all[0]}) })
	}
}

// The Python and Go barriers agree whether a lock is held, whichever side holds it.
// Rule: python, barrier
func TestPythonAndOursAgreeAboutTheBarrier(t *testing.T) {
	withPython(t, func(t *testing.T, peer host, ours []host) {
		p := newPlace(t)
		python, waiting := newPython(t, peer, p), newPython(t, peer, p)
		src, barrier := p.besides(t, ours[0]), p.besides(t, ours[1])

		lock := acquire(t, src, "job", multilock.Options{TTL: long})
		require.Equal(t, "held", waiting.Do("wait job"))
		requireEmpty(t, barrier, false)
		require.Equal(t, "acquired", python.Do("acquire other"))
		require.NoError(t, lock.Release(within(t)))
		require.Equal(t, "held", waiting.Do("wait job"))
		requireEmpty(t, barrier, false)
		require.Equal(t, "released", python.Do("release other"))
		requireEmpty(t, barrier, true)
		require.Equal(t, "passed", waiting.Do("wait job"))

		again := acquire(t, src, "job", multilock.Options{TTL: long})
		requireEmpty(t, barrier, false) // although this host has just seen that there is no group
		require.NoError(t, again.Release(within(t)))
	})
}

// One Python and two Go processes, each on a host of its own, increment one counter under a lock.
// Two Python processes on one NFS client would disturb each other: if one removes the lock file
// while the other reads it, the client keeps it as .nfs..., and the release fails with "Directory
// not empty".
// Rule: python, I1
func TestPythonAndOursTakeTurnsAcrossHosts(t *testing.T) {
	rounds := 100
	if testing.Short() {
		rounds = 15
	}
	withPython(t, func(t *testing.T, peer host, ours []host) {
		p := newPlace(t)
		counter := worker.NewCounter(t, outside(t))
		python := newPython(t, peer, p)
		python.Tell(fmt.Sprintf("count job %s %d", counter, rounds))
		results := make(chan error)
		for _, h := range ours {
			src := p.besides(t, h)
			go func() { results <- counter.Add(t.Context(), src, "job", rounds) }()
		}
		for range ours {
			require.NoError(t, <-results)
		}
		require.Equal(t, "counted", python.Hear())
		counter.Require(t, (1+len(ours))*rounds)
		p.requireEmpty(t)
	})
}
