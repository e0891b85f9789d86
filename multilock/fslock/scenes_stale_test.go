//go:build linux

package fslock_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// naive is a contender that clears stale locks by path, in the two steps in
// which the Python MultiLock does it: look how old the directory is, remove the
// tree of that name.
type naive struct {
	dir, locked, owner string
}

func newNaive(base, name, owner string) naive {
	dir := filepath.Join(base, fslock.DefaultGroup, name)
	return naive{dir: dir, locked: filepath.Join(dir, name+".locked"), owner: owner}
}

func (n naive) stale(t *testing.T, maxAge time.Duration) bool {
	info, err := os.Stat(n.dir)
	require.NoError(t, err)
	return time.Since(info.ModTime()) >= maxAge
}

func (n naive) clear(t *testing.T) { require.NoError(t, os.RemoveAll(n.dir)) }

func (n naive) acquire(t *testing.T) {
	require.NoError(t, os.Mkdir(n.dir, 0o777))
	require.NoError(t, os.WriteFile(n.locked, []byte(n.owner), 0o666))
}

func (n naive) holds(t *testing.T) bool {
	owner, err := os.ReadFile(n.locked)
	require.NoError(t, err)
	return string(owner) == n.owner
}

// Two contenders find the same lock stale. The slower one acts on what it saw
// after the faster one has taken the lock afresh. This shows that the scene is
// dangerous: done by path, both end up with the lock.
func TestSlowBreakerByPathTakesAFreshLockAway(t *testing.T) {
	base := fresh(t)
	require.NoError(t, os.Mkdir(filepath.Join(base, fslock.DefaultGroup), 0o777))
	dead, fast, slow := newNaive(base, "job", "dead 1"), newNaive(base, "job", "fast 2"), newNaive(base, "job", "slow 3")
	dead.acquire(t)
	hourAgo := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(dead.dir, hourAgo, hourAgo))

	require.True(t, fast.stale(t, time.Minute))
	require.True(t, slow.stale(t, time.Minute))
	fast.clear(t)
	fast.acquire(t)
	fastBelieves := fast.holds(t)
	slow.clear(t)
	slow.acquire(t)
	slowBelieves := slow.holds(t)

	require.True(t, fastBelieves)
	require.True(t, slowBelieves, "two holders: this is what must not happen to us")
	require.False(t, fast.holds(t))
}

// The same interleaving with ours: whoever breaks, breaks what it judged.
func TestSlowBreakerCannotReachAFreshLock(t *testing.T) {
	for view, who := range views(t) {
		t.Run(view, func(t *testing.T) {
			t.Parallel()
			base := fresh(t)
			killHolder(t, base, "job", order{TTL: 2 * time.Second})
			fast, slow := deadInEyesOf(t, base, who), deadInEyesOf(t, base, who)

			require.NoError(t, fast.Break(t.Context()))
			successor := acquire(t, open(t, fslock.Options{Base: base}), "job", multilock.Options{TTL: long})
			require.NoError(t, slow.Break(t.Context()), "what it judged dead is gone")
			require.NoError(t, successor.Verify(t.Context()))

			seen := look(t, slow)
			require.Equal(t, source.StateHeld.String(), seen.State.String())
			require.Equal(t, successor.Record().Token, seen.Record.Token)
			require.ErrorIs(t, slow.Break(t.Context()), source.ErrHeld)
			require.NoError(t, successor.Release(t.Context()))
		})
	}
}

// Even force cannot reach another lock than the one that was looked at.
func TestForceCannotReachAnotherLockThanTheOneSeen(t *testing.T) {
	src := open(t, fslock.Options{Base: fresh(t)})
	first := acquire(t, src, "job", multilock.Options{TTL: long})
	o := observe(t, src, "job", source.Patience{})
	look(t, o)
	require.NoError(t, first.Release(t.Context()))
	second := acquire(t, src, "job", multilock.Options{TTL: long})

	require.NoError(t, o.Force(t.Context()))
	require.NoError(t, second.Verify(t.Context()))
}

// killHolder leaves the lock of a process behind that was killed.
func killHolder(t *testing.T, base, name string, how order) {
	t.Helper()
	holder := newNeighbour(t, setting{}, order{Base: base})
	how.Do, how.Name = "acquire", name
	holder.must(t, how)
	holder.End()
}

// deadInEyesOf is an observer who has seen that the lock "job" is dead.
func deadInEyesOf(t *testing.T, base string, who process.Identity) source.Observer {
	t.Helper()
	o := observe(t, open(t, fslock.Options{Base: base, Self: who}), "job", source.Patience{})
	lookUntil(t, o, source.StateDead, nil)
	return o
}
