package fslock_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
)

// A host's wall clock that jumps while a waiter queues cannot be simulated here: no part of the queue reads
// it. What can be simulated are hosts whose clocks are years apart, and a jump of the server's clock, which
// dates the heartbeats.

// standBriefly queues for half a minute of its own clock.
func standBriefly(t *testing.T, src *fslock.Source) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	place, err := multilock.Enqueue(ctx, src, sweptName, multilock.Options{TTL: long})
	if err == nil {
		place.Leave()
	}
	return err
}

// In a bubble of synctest the wall clock shows the year 2000, and real files work.
// Rule: queue, I5
func TestLineOfHostsWithClocksYearsApart(t *testing.T) {
	t.Parallel()
	base := fresh(t)
	place, err := multilock.Enqueue(within(t), open(t, fslock.Options{Base: base}), sweptName, multilock.Options{TTL: long})
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		require.Less(t, time.Now().Year(), 2010)
		src, err := fslock.Open(fslock.Options{Base: base, FS: sharedFS(), Self: elsewhere(t)})
		require.NoError(t, err)
		defer src.Close()
		require.ErrorIs(t, standBriefly(t, src), multilock.ErrHeld, "the first is alive, whatever the year")
		require.NoError(t, drawFor(src, elsewhere(t), 2))
	})
	require.Len(t, namesIn(t, queueOf(base)), 2)
	place.Leave()
	behind := open(t, fslock.Options{Base: base, FS: sharedFS()})
	acquire(t, behind, sweptName, multilock.Options{TTL: long, Poll: 10 * time.Millisecond, Fair: true})
}

// The server's clock jumps while a waiter in the queue is alive: it is not skipped, as long as the time of
// its ticket changes.
// Rule: queue, silence
func TestServerClockSetUnderATicket(t *testing.T) {
	for name, by := range map[string]time.Duration{"back": time.Hour, "forward": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := fresh(t)
			src := open(t, fslock.Options{Base: base, FS: sharedFS(), Self: elsewhere(t)})
			require.NoError(t, drawAs(src, claim(self(t), 3*time.Second, time.Second), 1)) // dead after 1.5 s without a heartbeat
			ticket := filepath.Join(queueOf(base), namesIn(t, queueOf(base))[0])
			passed := make(chan error, 1)
			ctx := within(t)
			go func() {
				place, err := multilock.Enqueue(ctx, src, sweptName, multilock.Options{TTL: long, Poll: 20 * time.Millisecond})
				if err == nil {
					place.Leave()
				}
				passed <- err
			}()
			for beat, end := time.Now().Add(by), time.Now().Add(5*time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
				beat = beat.Add(time.Second)
				require.NoError(t, os.Chtimes(ticket, beat, beat), "he was passed over though he lives")
			}
			require.Empty(t, passed)
			require.NoError(t, os.RemoveAll(ticket))
			require.NoError(t, <-passed)
		})
	}
}
