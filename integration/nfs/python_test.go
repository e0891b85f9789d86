package nfs_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

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

// Each side sees on its host what the other one holds on another, and whose it is.
func TestPythonAndOursSeeEachOther(t *testing.T) {
	withPython(t, func(t *testing.T, peer host, ours []host) {
		p := newPlace(t)
		python := newPython(t, peer, p)
		for _, h := range ours {
			src := p.besides(t, h)
			require.Equal(t, "acquired", python.Do("acquire job"))
			_, err := multilock.TryAcquire(within(t), src, "job", multilock.Options{})
			require.ErrorIs(t, err, multilock.ErrHeld)
			seen := p.status(t, h)
			require.Len(t, seen, 1)
			require.Equal(t, python.Do("me job"), fmt.Sprintf("%s %d", seen[0].Host, seen[0].PID))
			require.Equal(t, peer.name, seen[0].Host)
			require.Equal(t, "mine", python.Do("verify job"))
			require.Equal(t, "released", python.Do("release job"))

			lock := acquire(t, src, "job", multilock.Options{TTL: long})
			require.Equal(t, "denied", python.Do("acquire job"))
			require.Equal(t, "not mine", python.Do("verify job"))
			require.Equal(t, "not mine", python.Do("release job"))
			require.NoError(t, lock.Verify(within(t)))
			require.NoError(t, lock.Release(within(t)))
		}
		p.requireEmpty(t)
	})
}

// The barriers of both sides agree about whether anything is held, whoever holds it.
func TestPythonAndOursAgreeAboutTheBarrier(t *testing.T) {
	withPython(t, func(t *testing.T, peer host, ours []host) {
		p := newPlace(t)
		python, waiting := newPython(t, peer, p), newPython(t, peer, p)
		src, barrier := p.besides(t, ours[0]), p.besides(t, ours[1])

		lock := acquire(t, src, "job", multilock.Options{TTL: long})
		require.Equal(t, "held", waiting.Do("wait job"))
		requireVacant(t, barrier, false)
		require.Equal(t, "acquired", python.Do("acquire other"))
		require.NoError(t, lock.Release(within(t)))
		require.Equal(t, "held", waiting.Do("wait job"))
		requireVacant(t, barrier, false)
		require.Equal(t, "released", python.Do("release other"))
		requireVacant(t, barrier, true)
		require.Equal(t, "passed", waiting.Do("wait job"))

		again := acquire(t, src, "job", multilock.Options{TTL: long})
		requireVacant(t, barrier, false) // although this host has just found that there is no group
		require.NoError(t, again.Release(within(t)))
	})
}

// One of theirs and two of ours, each on a host of its own, add to one number,
// which no two may do at once. Two Python processes on one NFS client would trip
// over each other: if one removes the lock file while the other reads it, the
// client keeps it as .nfs..., and the release ends with "Directory not empty".
func TestPythonAndOursTakeTurnsAcrossHosts(t *testing.T) {
	rounds := 100
	if testing.Short() {
		rounds = 15
	}
	withPython(t, func(t *testing.T, peer host, ours []host) {
		p := newPlace(t)
		counter := outside(t) + "/counter"
		require.NoError(t, os.WriteFile(counter, []byte("0"), 0o666))
		python := newPython(t, peer, p)
		python.Tell(fmt.Sprintf("count job %s %d", counter, rounds))
		results := make(chan error)
		for _, h := range ours {
			src := p.besides(t, h)
			go func() { results <- countBesides(t, src, counter, rounds) }()
		}
		for range ours {
			require.NoError(t, <-results)
		}
		require.Equal(t, "counted", python.Hear())
		number, err := readNumber(counter)
		require.NoError(t, err)
		require.Equal(t, (1+len(ours))*rounds, number)
		p.requireEmpty(t)
	})
}

func countBesides(t *testing.T, src *fslock.Source, counter string, rounds int) error {
	for range rounds {
		lock, err := multilock.Acquire(t.Context(), src, "job", multilock.Options{TTL: long})
		if err != nil {
			return err
		}
		if err := increment(counter); err != nil {
			return err
		}
		if err := lock.Release(t.Context()); err != nil {
			return err
		}
	}
	return nil
}

func increment(path string) error {
	number, err := readNumber(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(strconv.Itoa(number+1)), 0o666)
}

func readNumber(path string) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(text))
}
