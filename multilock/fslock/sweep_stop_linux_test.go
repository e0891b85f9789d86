package fslock_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/testkit/actor"
	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// A process that stands still for longer than its TTL, at whichever operation,
// has lost its lock to a contender on another host. When it goes on it must
// neither believe that it holds the lock, nor do any harm to the new holder's.
func TestStopAtEveryOperation(t *testing.T) {
	slots := make(slots, 24)
	sideBySide(t, stoppable(), func(t *testing.T, s scene) {
		for _, phase := range phases() {
			sweepOperations(t, 8, func(t *testing.T, n int) bool {
				defer slots.enter()()
				return runAndStop(t, s, n, phase)
			})
		}
	})
}

// stoppable are the scenes in which there is a lock to be lost for most of the
// time. In the first use of a base directory there is none until its last steps,
// which are those of every other acquisition. Manifests need none.
func stoppable() []scene {
	return slices.DeleteFunc(scenes(), func(s scene) bool { return !*exhaustive && (s.name == "first acquire" || s.lists != nil) })
}

func runAndStop(t *testing.T, s scene, n int, phase faultfs.Phase) (ended bool) {
	base := fresh(t)
	child := startVictim(t, strike{Base: base, Scene: s.name, How: "stop", N: n, Phase: phase})
	if child.Await(t) != actor.Stopped {
		require.NoError(t, child.Wait())
		return true
	}
	stopped := boottime.Now()
	lock := take(t, base, s, elsewhere(t))
	taken := sinceBoot()
	number, err := lock.Fence(t.Context())
	require.NoError(t, err)
	r := rivalRuns(t, s, lock)
	// It stands still for longer than it can have believed anything.
	time.Sleep(sweptTTL + sweptWindow - stopped.Elapsed())

	told := child.goOn(t)
	r.requireItsWord(t, base, told.Claim)
	next, err := lock.Fence(t.Context())
	require.NoError(t, err)
	require.Greater(t, next, number)
	require.Equal(t, lock.Record().Token, tokenOnDisk(t, base))
	given := sinceBoot()
	giveBack(t, lock)
	requireNoOverlap(t, told.Beliefs, taken, given)
	requireTidy(t, base)
	return false
}

// requireNoOverlap checks that no belief reaches into the time from taken until
// given, in which somebody else surely held the lock.
func requireNoOverlap(t *testing.T, beliefs []belief, taken, given time.Duration) {
	t.Helper()
	for i, b := range beliefs {
		till := b.Till
		if i+1 < len(beliefs) {
			till = min(till, beliefs[i+1].At)
		}
		overlap := min(till, given) - max(b.At, taken)
		require.LessOrEqual(t, overlap, time.Duration(0), "%s, while another held the lock from %s until %s", b, taken, given)
	}
}
