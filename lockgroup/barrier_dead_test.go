package lockgroup_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/lockgroup/internal/grouptest"
	"github.com/multilock/go/multilock"
)

// A barrier does not wait for ever for a dead holder: it clears the lock, and reports the holder with the
// evidence. The holder's unfinished job is not done.
// Rule: barrier-dead
func TestBarrierBuriesTheDead(t *testing.T) {
	suspect, dead := grouptest.Seen(multilock.StateSuspect, "node1"), grouptest.Seen(multilock.StateDead, "node1")
	for name, observations := range map[string][]multilock.Observation{
		"at once": {dead}, "after watching it": {suspect, suspect, suspect, suspect, dead},
		"after a long life": {grouptest.Alive("node1"), grouptest.Alive("node1"), grouptest.Alive("node1"), suspect, suspect, dead},
	} {
		t.Run(name, func(t *testing.T) {
			inPlace(t, func(t *testing.T, p *grouptest.Place) {
				p.Hold("a", observations...)
				p.Hold("b", grouptest.Alive("node2"))
				time.AfterFunc(20*time.Minute, func() { p.Release("b") })
				report, err := wait(t, p, lockgroup.BarrierOptions{})
				require.ErrorIs(t, err, lockgroup.ErrNotDone)
				require.Equal(t, []lockgroup.Holding{{Name: "a", Observation: dead}}, report.Crashed)
				require.Equal(t, []string{"a"}, p.Broken, "the living are never touched")
			})
		})
	}
}

// A script that has ended looks dead until the keeper of its lock has released the lock. A job has no
// keeper.
// Rule: barrier-dead
func TestBarrierLeavesAKeeperTimeToGiveBack(t *testing.T) {
	for name, job := range map[string]bool{"script": false, "job": true} {
		t.Run(name, func(t *testing.T) {
			inPlace(t, func(t *testing.T, p *grouptest.Place) {
				dead := grouptest.Seen(multilock.StateDead, "node1")
				dead.Record.Job = job
				p.Hold("a", dead)
				time.AfterFunc(500*time.Millisecond, func() { p.Release("a") })
				report, err := wait(t, p, lockgroup.BarrierOptions{})
				require.Equal(t, job, errors.Is(err, lockgroup.ErrNotDone))
				require.Equal(t, job, len(report.Crashed) == 1)
			})
		})
	}
}

// A suspect that sends another heartbeat is left alone.
// Rule: barrier-dead, I2
func TestBarrierLeavesTheLivingAlone(t *testing.T) {
	inPlace(t, func(t *testing.T, p *grouptest.Place) {
		suspect := grouptest.Seen(multilock.StateSuspect, "node1")
		p.Hold("a", suspect, suspect, suspect, grouptest.Alive("node1"))
		time.AfterFunc(20*time.Minute, func() { p.Release("a") })
		_, err := wait(t, p, lockgroup.BarrierOptions{})
		require.NoError(t, err)
		require.Empty(t, p.Broken)
	})
}

// A job that died may be taken over by another host, which may run it for long. The wait only ends if no
// host takes it over.
// Rule: barrier-dead
func TestBarrierLetsSomebodyElseDoTheWorkOfTheDead(t *testing.T) {
	for _, opt := range []lockgroup.BarrierOptions{{Members: []string{"a"}}, {Expect: 1}} {
		inPlace(t, func(t *testing.T, p *grouptest.Place) {
			p.Hold("a", grouptest.Seen(multilock.StateDead, "node1"))
			time.AfterFunc(5*time.Minute, func() { p.Hold("a", grouptest.Alive("node2")) })
			time.AfterFunc(40*time.Minute, func() { p.Release("a"); p.Commit(grouptest.Succeeded("a")) })
			report, err := wait(t, p, opt)
			require.NoError(t, err)
			require.Equal(t, 1, report.Done)
			require.Empty(t, report.Crashed)
			require.Equal(t, []string{"a"}, p.Broken)
		})
		inPlace(t, func(t *testing.T, p *grouptest.Place) {
			dead := grouptest.Seen(multilock.StateDead, "node1")
			dead.Record.TTL = 5 * time.Second
			p.Hold("a", dead)
			var told []lockgroup.Holding
			start := time.Now()
			opt.Died = func(h lockgroup.Holding) {
				require.Less(t, time.Since(start), 5*time.Second, "the death is told at once")
				told = append(told, h)
			}
			report, err := wait(t, p, opt)
			require.ErrorIs(t, err, lockgroup.ErrNotDone)
			require.InDelta(t, 3*dead.Record.TTL, time.Since(start), float64(5*time.Second))
			require.Equal(t, told, report.Crashed)
			require.Equal(t, "node1", report.Crashed[0].Observation.Record.Holder.Host)
		})
	}
}

// While another host runs an awaited job, that host may still take over a job that died.
// Rule: barrier-dead
func TestBarrierWaitsForABusyHostToTakeOver(t *testing.T) {
	inPlace(t, func(t *testing.T, p *grouptest.Place) {
		p.Hold("a", grouptest.Seen(multilock.StateDead, "node1"))
		p.Hold("b", grouptest.Alive("node2"))
		time.AfterFunc(30*time.Minute, func() { p.Release("b"); p.Commit(grouptest.Succeeded("b")) })
		time.AfterFunc(31*time.Minute, func() { p.Commit(grouptest.Succeeded("a")) })
		report, err := wait(t, p, lockgroup.BarrierOptions{Members: []string{"a", "b"}})
		require.NoError(t, err)
		require.Equal(t, 2, report.Done)
	})
}

// Without a limit the wait lasts until ctx ends.
// Rule: none (time limits)
func TestBarrierThatWaitsForATakeoverForEver(t *testing.T) {
	inPlace(t, func(t *testing.T, p *grouptest.Place) {
		p.Hold("a", grouptest.Seen(multilock.StateDead, "node1"))
		time.AfterFunc(30*time.Minute, func() { p.Commit(grouptest.Succeeded("a")) })
		_, err := wait(t, p, lockgroup.BarrierOptions{Members: []string{"a"}, Takeover: -1})
		require.NoError(t, err)
	})
}

// A holder with a short TTL is inspected often, even after a long wait.
// Rule: barrier-dead
func TestLooksFollowTheTTL(t *testing.T) {
	inPlace(t, func(t *testing.T, p *grouptest.Place) {
		alive, dead := grouptest.Alive("node1"), grouptest.Seen(multilock.StateDead, "node1")
		alive.Record.TTL, dead.Record.TTL = 5*time.Second, 5*time.Second
		p.Hold("a", alive)
		var died time.Time
		time.AfterFunc(10*time.Minute, func() { died = time.Now(); p.Hold("a", dead) })
		_, err := wait(t, p, lockgroup.BarrierOptions{Members: []string{"a"}, Died: func(lockgroup.Holding) {
			require.Less(t, time.Since(died), 5*time.Second)
		}})
		require.ErrorIs(t, err, lockgroup.ErrNotDone)
	})
}

// Locks of other jobs do not matter, even if their holders are dead.
// Rule: barrier-dead, members
func TestBarrierForMembersLeavesOthersLocksAlone(t *testing.T) {
	inPlace(t, func(t *testing.T, p *grouptest.Place) {
		p.Hold("other", grouptest.Seen(multilock.StateDead, "node1"))
		time.AfterFunc(10*time.Minute, func() { p.Commit(grouptest.Succeeded("a")) })
		_, err := wait(t, p, lockgroup.BarrierOptions{Members: []string{"a"}})
		require.NoError(t, err)
		require.Empty(t, p.Broken)
		require.True(t, p.IsHeld("other"))
	})
}

// A directory that remains from a crash during a release is neither reported as a death nor waited for.
// Rule: barrier-dead
func TestBarrierClearsLeftovers(t *testing.T) {
	inPlace(t, func(t *testing.T, p *grouptest.Place) {
		p.Left["empty"] = true
		orphan := grouptest.Seen(multilock.StateDead, "")
		orphan.Orphan = true
		p.Hold("orphan", orphan)
		report, err := wait(t, p, lockgroup.BarrierOptions{})
		require.NoError(t, err)
		require.Empty(t, report.Crashed)
		require.Equal(t, []string{"orphan"}, p.Broken)
	})
}

// A barrier that cannot clear a dead holder's lock reports the death like any other, and that the lock
// remains.
// Rule: barrier-dead
func TestBarrierSaysIfTheDeadCannotBeCleared(t *testing.T) {
	inPlace(t, func(t *testing.T, p *grouptest.Place) {
		denied := errors.New("permission denied")
		p.Hold("a", grouptest.Seen(multilock.StateDead, "node1"))
		p.Fail("break", denied)
		report, err := wait(t, p, lockgroup.BarrierOptions{})
		require.ErrorIs(t, err, lockgroup.ErrNotDone)
		require.Equal(t, "node1", report.Crashed[0].Observation.Record.Holder.Host)
		require.Len(t, report.Left, 1)
		require.ErrorIs(t, report.Left[0], denied)
	})
}

// The barrier continues to wait for live holders, and for the next holder of the lock.
// Rule: barrier-dead
func TestBarrierWaitsBesideLocksOfTheDead(t *testing.T) {
	inPlace(t, func(t *testing.T, p *grouptest.Place) {
		dead, alive := grouptest.Seen(multilock.StateDead, "node1"), grouptest.Alive("node2")
		dead.Record.Token, alive.Record.Token = "of the dead", "of the living"
		p.Hold("a", dead)
		p.Hold("b", grouptest.Alive("node3"))
		p.Fail("break", errors.New("permission denied"))
		time.AfterFunc(10*time.Minute, func() { p.Hold("a", alive); p.Release("b") })
		var ended time.Time
		time.AfterFunc(20*time.Minute, func() { ended = time.Now(); p.Release("a") })
		report, err := wait(t, p, lockgroup.BarrierOptions{})
		require.ErrorIs(t, err, lockgroup.ErrNotDone)
		require.False(t, ended.IsZero(), "it ended before the living")
		require.Empty(t, report.Left)
	})
}

// With members another process that can clear dead holders' locks may do their work in time.
// Rule: barrier-dead, members
func TestBarrierForMembersGoesOnIfTheDeadCannotBeCleared(t *testing.T) {
	inPlace(t, func(t *testing.T, p *grouptest.Place) {
		p.Hold("a", grouptest.Seen(multilock.StateDead, "node1"))
		p.Left["b"] = true
		p.Fail("break", errors.New("permission denied"))
		p.Fail("tidy", errors.New("permission denied"))
		members := lockgroup.BarrierOptions{Members: []string{"a", "b"}}
		report, err := wait(t, p, members)
		require.ErrorIs(t, err, lockgroup.ErrNotDone)
		require.Equal(t, []string{"a", "b"}, report.Missing)
		time.AfterFunc(10*time.Minute, func() { p.Commit(grouptest.Succeeded("a")); p.Commit(grouptest.Succeeded("b")) })
		members.Takeover = -1
		report, err = wait(t, p, members)
		require.NoError(t, err)
		require.Equal(t, 2, report.Done)
	})
}

// A lock that cannot be inspected keeps the barrier closed, with no other effect.
// Rule: barrier
func TestBarrierReportsWhatItCannotLookAt(t *testing.T) {
	inPlace(t, func(t *testing.T, p *grouptest.Place) {
		p.Hold("a", grouptest.Alive("node1"))
		p.Fail("look", errors.New("input/output error"))
		report, err := wait(t, p, lockgroup.BarrierOptions{})
		require.Error(t, err)
		require.Contains(t, report.Held[0].Observation.Why, "input/output error")
		require.Empty(t, p.Broken)
	})
}
