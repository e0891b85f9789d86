//go:build linux

package fslock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/process"
)

// A number whose process started at another time than the record says belongs
// to somebody else.
func TestForgedStartTimeIsAnotherProcess(t *testing.T) {
	base := fresh(t)
	neighbour, stranger := open(t, fslock.Options{Base: base}), open(t, fslock.Options{Base: base, Self: elsewhere(t)})
	earlier := self(t)
	earlier.Start--
	plant(t, neighbour, "job", claim(earlier, long, time.Minute))

	seen := look(t, observe(t, neighbour, "job", multilock.Patience{}))
	require.Equal(t, multilock.Dead.String(), seen.State.String())
	require.Contains(t, seen.Why, "another process")
	seen = look(t, observe(t, stranger, "job", multilock.Patience{}))
	require.Equal(t, multilock.Held.String(), seen.State.String())
	require.Contains(t, seen.Why, "another host")

	acquire(t, neighbour, "job", multilock.Options{TTL: long})
}

const rebootBeat = 400 * time.Millisecond

// beforeTheReboot is this host's identity of an earlier boot, and the machine's
// own as it is now; both have a machine id, which this system may lack.
func beforeTheReboot(t *testing.T) (then, now process.Identity) {
	now = self(t)
	now.Machine = "00000000ba5eba11"
	then = now
	then.Boot = "00000000-0000-4000-8000-00000000b007"
	return then, now
}

// Three heartbeats without a sign of life are enough for a holder whose machine
// seems to have been rebooted since; its TTL would be an hour.
func TestHolderFromBeforeTheRebootIsTakenAfterThreeHeartbeats(t *testing.T) {
	t.Parallel()
	base := fresh(t)
	then, now := beforeTheReboot(t)
	src := open(t, fslock.Options{Base: base, Self: now})
	lease := plant(t, src, "job", claim(then, long, rebootBeat))
	o := observe(t, src, "job", multilock.Patience{})
	last := boottime.Now()
	require.NoError(t, lease.Renew(t.Context()))

	seen := look(t, o)
	require.Equal(t, multilock.Held.String(), seen.State.String())
	require.Contains(t, seen.Why, "rebooted")
	lookUntil(t, o, multilock.Dead, nil)
	// Three heartbeats, but for the grain of the filesystem's clock.
	require.GreaterOrEqual(t, last.Elapsed(), 3*rebootBeat-rebootBeat/4)
	require.NoError(t, o.Break(t.Context()))
	acquire(t, src, "job", multilock.Options{TTL: long})
}

// On any other host that is nothing special.
func TestHolderFromBeforeTheRebootKeepsItsTTLElsewhere(t *testing.T) {
	t.Parallel()
	base := fresh(t)
	then, now := beforeTheReboot(t)
	lease := plant(t, open(t, fslock.Options{Base: base, Self: now}), "job", claim(then, long, rebootBeat))
	stranger := open(t, fslock.Options{Base: base, Self: elsewhere(t)})
	o := observe(t, stranger, "job", multilock.Patience{})
	for start := boottime.Now(); start.Elapsed() < 6*rebootBeat; time.Sleep(rebootBeat / 4) {
		require.Equal(t, multilock.Held.String(), look(t, o).State.String())
	}
	require.NoError(t, lease.Renew(t.Context()))
}

// A clone of a machine looks like its earlier boot, but goes on beating.
func TestCloneOfTheMachineIsNeverTouched(t *testing.T) {
	t.Parallel()
	base := fresh(t)
	then, now := beforeTheReboot(t)
	src := open(t, fslock.Options{Base: base, Self: now})
	lease := plant(t, src, "job", claim(then, long, rebootBeat))
	neverDead(t, src, "job", 3*rebootBeat, func() { require.NoError(t, lease.Renew(t.Context())) })
	require.NoError(t, lease.Release(t.Context()))
}
