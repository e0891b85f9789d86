//go:build linux

package fslock_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/testkit/worker"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// pythonPeer starts a process that acquires locks as the Python MultiLock does. See
// testdata/multilock_peer.py for its commands.
func pythonPeer(t *testing.T, base string) *locktest.Script {
	t.Helper()
	return locktest.StartScript(t, exec.Command(locktest.Python(t), "testdata/multilock_peer.py", filepath.Join(base, fslock.DefaultGroup)))
}

func beside(t *testing.T, base string) *fslock.Source {
	return open(t, fslock.Options{Base: base, LegacyPeers: true})
}

// Rule: python
func TestPythonSeesOurLockAsHeld(t *testing.T) {
	base := fresh(t)
	peer := pythonPeer(t, base)
	lock := acquire(t, beside(t, base), "job", multilock.Options{TTL: long})
	require.Equal(t, "denied", peer.Do("acquire job"))
	require.Equal(t, "not mine", peer.Do("verify job"))
	require.Equal(t, "not mine", peer.Do("release job"))
	require.NoError(t, lock.Verify(t.Context()))

	require.NoError(t, lock.Release(t.Context()))
	require.Equal(t, "acquired", peer.Do("acquire job"))
}

// Rule: python
func TestWeSeeAPythonLockAsHeld(t *testing.T) {
	base := fresh(t)
	peer := pythonPeer(t, base)
	src := beside(t, base)
	require.Equal(t, "acquired", peer.Do("acquire job"))
	var held *multilock.HeldError
	_, err := multilock.TryAcquire(within(t), src, "job", multilock.Options{})
	require.ErrorAs(t, err, &held)
	require.Contains(t, held.Observation.Why, "Python MultiLock")
	require.Equal(t, self(t).Host, held.Observation.Record.Holder.Host)
	require.Equal(t, peer.PID(), held.Observation.Record.Holder.PID)
	require.Equal(t, "mine", peer.Do("verify job"))

	require.Equal(t, "released", peer.Do("release job"))
	lock := acquire(t, src, "job", multilock.Options{TTL: long})
	require.NoError(t, lock.Release(t.Context()))
}

// onTheHost is this process as one that sees all processes of its host.
func onTheHost(t *testing.T) process.Identity {
	id := self(t)
	id.Namespace = "pid:[4026531836]"
	return id
}

// A bare pid proves nothing where other hosts may have the same pid, nor without --legacy-peers: there a
// dead Python peer keeps its lock, unless the caller sets MaxAge. That its process is gone is reported in
// any case.
// Rule: python, unreadable
func TestLockOfADeadPythonPeer(t *testing.T) {
	elsewhere := onTheHost(t)
	elsewhere.Host = "elsewhere"
	contained := onTheHost(t)
	contained.Namespace = "pid:[4026532000]"
	for name, c := range map[string]struct {
		self         process.Identity
		legacy, dies bool
		told         string
	}{
		"with legacy peers":       {self: onTheHost(t), legacy: true, dies: true, told: "no process"},
		"only ours":               {self: onTheHost(t), told: "no process"},
		"from another host":       {self: elsewhere, legacy: true, told: "--max-age"},
		"from within a container": {self: contained, legacy: true, told: "--max-age"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := fresh(t)
			peer := pythonPeer(t, base)
			require.Equal(t, "acquired", peer.Do("acquire job"))
			peer.Kill()
			age(t, filepath.Join(base, fslock.DefaultGroup, "job"))
			src := open(t, fslock.Options{Base: base, LegacyPeers: c.legacy, Self: c.self})
			lock, err := multilock.TryAcquire(within(t), src, "job", multilock.Options{TTL: long})
			if c.dies {
				require.NoError(t, err)
				requireBroken(t, src, "job", c.told)
				require.NoError(t, lock.Release(t.Context()))
				return
			}
			require.ErrorIs(t, err, source.ErrHeld)
			require.ErrorContains(t, err, c.told)
			acquire(t, src, "job", multilock.Options{TTL: long, StalePolicy: source.StalePolicy{MaxAge: time.Second}})
			requireBroken(t, src, "job", "no heartbeat")
		})
	}
}

// However old the lock is, its process is alive.
// Rule: python, unreadable
func TestMaxAgeSparesALivingPythonPeer(t *testing.T) {
	for name, legacy := range map[string]bool{"legacy peers": true, "only ours": false} {
		t.Run(name, func(t *testing.T) {
			base := fresh(t)
			peer := pythonPeer(t, base)
			require.Equal(t, "acquired", peer.Do("acquire job"))
			age(t, filepath.Join(base, fslock.DefaultGroup, "job"))
			src := open(t, fslock.Options{Base: base, LegacyPeers: legacy, Self: onTheHost(t)})
			_, err := multilock.TryAcquire(within(t), src, "job", multilock.Options{StalePolicy: source.StalePolicy{MaxAge: time.Second}})
			require.ErrorIs(t, err, source.ErrHeld)
			require.ErrorContains(t, err, "lives on this host")
			require.Equal(t, "mine", peer.Do("verify job"))
			_, err = multilock.Break(within(t), src, "job", multilock.BreakOptions{Alive: true})
			require.NoError(t, err)
		})
	}
}

// Four of theirs and four of ours increment one number, which no two may do at once.
// Rule: python, I1
func TestPythonAndOursTakeTurns(t *testing.T) {
	const each, rounds = 4, 40
	base := fresh(t)
	counter := worker.NewCounter(t, t.TempDir())
	var theirs []*locktest.Script
	var ours []neighbour
	for range each {
		theirs = append(theirs, pythonPeer(t, base))
		ours = append(ours, newNeighbour(t, setting{}, order{Base: base, Legacy: true}))
	}
	for i := range each {
		theirs[i].Tell(fmt.Sprintf("count job %s %d", counter, rounds))
		ours[i].Tell(t, order{Do: "count", Name: "job", Counter: counter, Rounds: rounds})
	}
	for i := range each {
		require.Empty(t, ours[i].hear(t).Error)
		require.Equal(t, "counted", theirs[i].Hear())
	}
	counter.Require(t, 2*each*rounds)
	require.Empty(t, namesIn(t, filepath.Join(base, ".multilock", "staging")))
}

// A Python peer that was suspended for too long while it acquired the lock finds that its directory was
// cleared, and reports that, at any step.
// Rule: python, stopped
func TestPythonPausedWhileItTakesTheLock(t *testing.T) {
	for name, steps := range map[string]struct{ before, after []string }{
		"before its lock file": {[]string{"mkdir job"}, []string{"fill job", "rename job"}},
		"before its rename":    {[]string{"mkdir job", "fill job"}, []string{"rename job"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := fresh(t)
			peer := pythonPeer(t, base)
			for _, step := range steps.before {
				require.Equal(t, "done", peer.Do(step))
			}
			before := entries(t, base)
			_, err := multilock.TryAcquire(within(t), beside(t, base), "job", multilock.Options{})
			require.ErrorIs(t, err, source.ErrHeld)
			require.Equal(t, before, entries(t, base))

			lock := acquire(t, beside(t, base), "job", multilock.Options{TTL: long})
			var said string
			for _, step := range steps.after {
				if said = peer.Do(step); strings.HasPrefix(said, "denied") {
					break
				}
			}
			require.Contains(t, said, "denied")
			require.Equal(t, "not mine", peer.Do("verify job"))
			require.NoError(t, lock.Verify(t.Context()))
			require.NoError(t, lock.Release(t.Context()))
			require.Equal(t, "acquired", peer.Do("acquire job"))
		})
	}
}

func entries(t *testing.T, base string) []string {
	return tree(t, filepath.Join(base, fslock.DefaultGroup))
}

// The guard that a crash between two steps of a release can leave is cleared like any other orphaned entry.
// Rule: python, orphan
func TestGuardWithoutALockIsCleared(t *testing.T) {
	for name, legacy := range map[string]bool{"legacy peers": true, "only ours": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := used(t)
			dir := filepath.Join(base, "used", "job")
			require.NoError(t, os.MkdirAll(filepath.Join(dir, "job.lock"), 0o777))
			age(t, dir)
			src := open(t, fslock.Options{Base: base, Group: "used", LegacyPeers: legacy})
			lock, err := multilock.TryAcquire(within(t), src, "job", multilock.Options{})
			require.NoError(t, err)
			require.NoError(t, lock.Release(t.Context()))
			require.Empty(t, namesIn(t, filepath.Join(base, "used")))
		})
	}
}
