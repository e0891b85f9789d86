package fslock_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/testkit/sweep"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// An error only counts as an answer if it is true: whichever operation fails or loses its reply, what the
// library reports must agree with what is on disk, and the next contender must acquire the lock.
// Rule: I4, commit, outcome, forget, manifest, add, barrier
func TestErrorAtEveryOperation(t *testing.T) {
	slots := make(sweep.Slots, 40)
	sweep.SideBySide(t, swept(), func(t *testing.T, s scene) {
		sweep.Operations(t, 16, func(t *testing.T, n int) bool {
			var ended atomic.Bool
			sweep.SideBySide(t, sweep.FaultsAt(n), func(t *testing.T, f sweep.Fault) {
				defer slots.Enter()()
				if runWithFault(t, s, f, n) {
					ended.Store(true)
				}
			})
			return ended.Load()
		})
	})
}

// struck is an operation with a fault, and its outcome.
type struck struct {
	*player
	base string
	op   faultfs.Op
	err  error
	// lie means that an operation was not carried out, or only reads, and that the answer was that an
	// existing entry is gone. No honest server does that, so "lost" and "free" may be wrong then; an
	// acquisition may not.
	lie bool
}

func runWithFault(t *testing.T, s scene, f sweep.Fault, n int) (ended bool) {
	base := fresh(t)
	p, err := newPlayer(base, s)
	require.NoError(t, err)
	require.NoError(t, s.prepare(p))
	var op atomic.Pointer[faultfs.Op]
	p.faulty.Inject(func(now faultfs.Op) error {
		if now.N != n || now.Phase != f.Phase {
			return nil
		}
		op.Store(&now)
		return f.Errno
	})
	err = s.play(p)
	p.faulty.Inject(nil)
	if op.Load() == nil {
		require.NoError(t, err)
		s.check(t, struck{player: p, base: base})
		require.NoError(t, p.end())
		return true
	}
	t.Logf("%s %s: %v", op.Load().Kind, op.Load().Path, err)
	s.check(t, struck{player: p, base: base, op: *op.Load(), err: err, lie: f.IsLie(op.Load().Kind)})
	require.NoError(t, p.end())
	requireClosed(t, base)
	giveBack(t, take(t, base, s, elsewhere(t)))
	requireTidy(t, base)
	return false
}

// requireAcquired: success means that the lock is ours, an error that it is not, unless the error is
// ErrUnsure.
func requireAcquired(t *testing.T, o struck) {
	t.Helper()
	token := tokenOnDisk(t, o.base)
	switch {
	case o.lease != nil:
		require.NoError(t, o.err)
		require.Equal(t, o.lease.Record().Token, token)
		require.NoError(t, o.renew())
		require.NoError(t, o.release())
		require.Empty(t, tokenOnDisk(t, o.base))
	case errors.Is(o.err, source.ErrUnsure):
	case o.lie && o.op.Kind == "unlink" && o.op.Real == lockedPath(o.base):
		// On a busy machine the lock may come too late, and is released: the server lied about that. It is
		// not renewed, so the next contender acquires it.
		require.Error(t, o.err)
	default:
		require.Error(t, o.err)
		require.NotEqual(t, o.self.Start, startOnDisk(t, o.base), "an attempt that was not successful left a lock")
		requireUnblocked(t, o)
	}
}

// requireUnblocked: an empty directory is no lock, but blocks a barrier. Only a mkdir whose outcome is in
// doubt may leave one, or a failed rmdir.
func requireUnblocked(t *testing.T, o struck) {
	t.Helper()
	dir := filepath.Join(o.base, fslock.DefaultGroup, sweptName)
	if _, err := os.Stat(dir); err != nil || len(namesIn(t, dir)) > 0 {
		return
	}
	require.Contains(t, []string{"mkdir", "rmdir"}, o.op.Kind, "an attempt that was not successful left an empty directory")
	require.Equal(t, dir, o.op.Real)
}

// startOnDisk distinguishes this process's locks from those of the dead.
func startOnDisk(t *testing.T, base string) uint64 {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(base, fslock.DefaultGroup, sweptName, sweptName+".locked"))
	if os.IsNotExist(err) {
		return 0
	}
	require.NoError(t, err)
	return fslock.ParseRecord(sweptName, data).Holder.Start
}

func (o struck) held(t *testing.T) bool {
	t.Helper()
	return tokenOnDisk(t, o.base) == o.lease.Record().Token
}

func requireRenewed(t *testing.T, o struck) {
	t.Helper()
	require.True(t, o.held(t))
	if errors.Is(o.err, source.ErrLost) {
		require.True(t, o.lie)
		return
	}
	require.NoError(t, o.renew())
	require.NoError(t, o.release())
}

func requireFenced(t *testing.T, o struck) {
	t.Helper()
	require.True(t, o.held(t))
	if errors.Is(o.err, source.ErrLost) {
		require.True(t, o.lie)
		return
	}
	first := o.number
	require.NoError(t, o.fence())
	require.Greater(t, o.number, first)
	require.NoError(t, o.release())
}

func requireMarked(t *testing.T, o struck) {
	t.Helper()
	require.True(t, o.held(t))
	data, err := os.ReadFile(filepath.Join(o.base, fslock.DefaultGroup, sweptName, sweptName+".job"))
	switch {
	case errors.Is(o.err, source.ErrLost):
		require.True(t, o.lie)
		return
	case o.err == nil:
		require.NoError(t, err)
		var group process.Group
		require.NoError(t, json.Unmarshal(data, &group))
		require.Equal(t, syscall.Getpgrp(), group.PGID)
	}
	require.NoError(t, o.renew())
	require.NoError(t, o.release())
}

// requireMarkedAgain checks that the job that was recorded before is still recorded, whatever happened to
// the second record.
func requireMarkedAgain(t *testing.T, o struck) {
	t.Helper()
	require.True(t, o.held(t))
	if errors.Is(o.err, source.ErrLost) {
		require.True(t, o.lie)
		return
	}
	data, err := os.ReadFile(filepath.Join(o.base, fslock.DefaultGroup, sweptName, sweptName+".job"))
	require.NoError(t, err)
	lines := strings.Split(string(data), "\n")
	require.Regexp(t, fmt.Sprintf(`"pgid":%d[,}]`, syscall.Getpgrp()), lines[len(lines)-1]) // its leader may have ended
	if o.err == nil {
		require.Len(t, lines, 2)
	}
	require.NoError(t, o.renew())
	require.NoError(t, o.markAgain())
	require.NoError(t, o.release())
}

func requireReleased(t *testing.T, o struck) {
	t.Helper()
	switch {
	case errors.Is(o.err, source.ErrLost), errors.Is(o.err, source.ErrUnsure):
		require.True(t, o.lie || tokenOnDisk(t, o.base) == "")
	case o.err != nil:
		require.NoError(t, o.release(), "it may be called again")
		fallthrough
	default:
		require.True(t, o.lie || tokenOnDisk(t, o.base) == "")
		require.ErrorIs(t, o.release(), source.ErrReleased)
	}
}

func requireBrokenOrNot(t *testing.T, o struck) {
	t.Helper()
	switch {
	case o.err == nil && !o.lie && o.seen.State == source.StateDead:
		require.Empty(t, tokenOnDisk(t, o.base))
	case o.err == nil && !o.lie:
		require.NotEqual(t, source.StateFree, o.seen.State)
	case o.err != nil && tokenOnDisk(t, o.base) != "":
		lookUntil(t, o.observer, source.StateDead, nil)
		require.NoError(t, o.observer.Break(t.Context()))
		require.Empty(t, tokenOnDisk(t, o.base))
	}
}

func requireSwept(t *testing.T, o struck) {
	t.Helper()
	if o.err != nil {
		_, err := o.src.Sweep(t.Context())
		require.NoError(t, err, "it may be called again")
	}
	for _, l := range o.swept {
		require.NotEqual(t, l.Strange, l.Dead, "what could not be looked at is named, and stays")
		if o.lie || l.Strange {
			continue
		}
		require.NoDirExists(t, filepath.Join(o.base, ".multilock", "staging", l.Entry))
	}
}

func requireAppended(t *testing.T, o struck) {
	t.Helper()
	events, err := source.Collect(o.src.History(t.Context(), o.event.Time))
	require.NoError(t, err)
	if o.err == nil {
		require.Len(t, events, 1)
	}
	require.NoError(t, o.src.Append(t.Context(), o.event))
	again, err := source.Collect(o.src.History(t.Context(), o.event.Time))
	require.NoError(t, err)
	require.Len(t, again, len(events)+1)
}
