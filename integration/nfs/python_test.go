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

// What the lab's test command passes on, for a process that takes locks as the
// Python MultiLock does.
const (
	pythonHome = "/guest/python/usr"
	peerScript = "/guest/multilock_peer.py"
)

// newPython starts such a process on a host. See multilock/fslock/testdata/multilock_peer.py
// for what it can be told.
func newPython(t *testing.T, h host, p place) *locktest.Script {
	t.Helper()
	libraries := pythonHome + "/lib/x86_64-linux-gnu"
	return locktest.StartScript(t, exec.Command("on", h.name, "env", "PYTHONHOME="+pythonHome, "PYTHONDONTWRITEBYTECODE=1",
		"LD_LIBRARY_PATH="+libraries+":/guest/python/lib/x86_64-linux-gnu",
		pythonHome+"/bin/python3.11", peerScript, p.on(h, fslock.DefaultGroup)))
}

// besides opens the locks of a place for use together with Python peers.
func (p place) besides(t *testing.T, h host) *fslock.Source {
	return fslocktest.Open(t, fslock.Options{Base: p.on(h), FS: h, Self: h.identity(t), LegacyPeers: true})
}

// withPython runs a test with the Python peer on the v3 host, and on the v4.1 one;
// ours are on the others.
func withPython(t *testing.T, run func(t *testing.T, peer host, ours []host)) {
	needCommand(t)
	if _, err := os.Stat(pythonHome); err != nil {
		t.Skip("there is no python3 in this machine: the lab could not get Debian's packages of it")
	}
	all := hosts()
	t.Run("v3", func(t *testing.T) { run(t, all[2], all[:2]) })
	if !testing.Short() {
		t.Run("v4.1", func(t *testing.T) { run(t, all[1], []host{all[2], all[0]}) })
	}
}

// The barriers of both sides agree about whether anything is held, whichever side holds it.
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
		requireEmpty(t, barrier, false) // although this host has just found that there is no group
		require.NoError(t, again.Release(within(t)))
	})
}

// One of theirs and two of ours, each on a host of its own, add to one number,
// which no two may do at once. Two Python processes on one NFS client would trip
// over each other: if one removes the lock file while the other reads it, the
// client keeps it as .nfs..., and the release ends with "Directory not empty".
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
