//go:build linux

package fslock_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

// No clock is compared with another host's. A holder whose clock is wrong cannot be made
// with faketime(1), which replaces calls of the C library that Go programs do not use, nor
// with a time namespace, which does not shift CLOCK_REALTIME (time_namespaces(7)).

// ttl and beat of the holders here. They beat when the test says so.
const (
	clockTTL  = 1500 * time.Millisecond
	clockBeat = 500 * time.Millisecond
)

// In a bubble of synctest the wall clock shows the year 2000, and real files work.
func TestHolderAndContenderWithClocksYearsApart(t *testing.T) {
	t.Parallel()
	base := fresh(t)
	behind := claim(elsewhere(t), clockTTL, clockBeat)
	synctest.Test(t, func(t *testing.T) {
		require.Less(t, time.Now().Year(), 2010)
		for _, name := range []string{"dead", "living"} {
			plant(t, open(t, fslock.Options{Base: base}), name, behind)
		}
	})
	src := open(t, fslock.Options{Base: base})
	neverDead(t, src, "living", clockTTL, func() { setTime(t, base, "living", time.Now()) })
	acquire(t, src, "dead", multilock.Options{TTL: long})

	plant(t, src, "ahead", claim(elsewhere(t), long, clockBeat))
	synctest.Test(t, func(t *testing.T) {
		_, err := multilock.TryAcquire(t.Context(), open(t, fslock.Options{Base: base}), "ahead", multilock.Options{})
		require.ErrorIs(t, err, source.ErrHeld)
	})
}

// The server's clock was set back by an hour: the last sign of life lies in the
// future, and the waiter's own clock decides, after a whole TTL of watching.
func TestServerClockSetBackUnderADeadHolder(t *testing.T) {
	t.Parallel()
	base := fresh(t)
	src := open(t, fslock.Options{Base: base})
	plant(t, src, "job", claim(elsewhere(t), clockTTL, clockBeat))
	inAnHour := time.Now().Add(time.Hour)
	setTime(t, base, "job", inAnHour)

	o := observe(t, src, "job", source.Patience{})
	start := boottime.Now()
	seen := look(t, o)
	require.Equal(t, source.StateSuspect.String(), seen.State.String())
	require.Contains(t, seen.Why, "set back")
	lookUntil(t, o, source.StateDead, nil)
	require.GreaterOrEqual(t, start.Elapsed(), clockTTL)
	require.NoError(t, o.Break(t.Context()))
	acquire(t, src, "job", multilock.Options{TTL: long})
}

// As long as the holder lives its time moves, wherever it lies: in the future, where the
// server's clock was set back, or an hour ago, where it was set forward.
func TestServerClockSetUnderALivingHolder(t *testing.T) {
	for name, by := range map[string]time.Duration{"back": time.Hour, "forward": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := fresh(t)
			src := open(t, fslock.Options{Base: base})
			lease := plant(t, src, "job", claim(elsewhere(t), clockTTL, clockBeat))
			beat := time.Now().Add(by)
			neverDead(t, src, "job", clockTTL, func() {
				beat = beat.Add(clockBeat)
				setTime(t, base, "job", beat)
			})
			require.NoError(t, lease.Renew(t.Context()))
		})
	}
}

func setTime(t *testing.T, base, name string, to time.Time) {
	t.Helper()
	require.NoError(t, os.Chtimes(filepath.Join(base, fslock.DefaultGroup, name), to, to))
}

// neverDead watches a lock for twice the silence after which it would be
// taken. It looks twice after each sign of life, which keeps it exact on the
// slowest machine: Dead needs at least two looks within the window, and if the
// test stands still between them the window starts anew.
func neverDead(t *testing.T, src *fslock.Source, name string, limit time.Duration, sign func()) {
	t.Helper()
	o := observe(t, src, name, source.Patience{})
	for start := boottime.Now(); start.Elapsed() < 2*limit; {
		sign()
		for range 2 {
			seen := look(t, o)
			require.NotEqual(t, source.StateDead.String(), seen.State.String(), seen.Why)
			require.NotEqual(t, source.StateFree.String(), seen.State.String())
			require.ErrorIs(t, o.Break(t.Context()), source.ErrHeld)
			time.Sleep(10 * time.Millisecond)
		}
	}
}
