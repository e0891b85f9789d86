//go:build linux

package stalefs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
)

// A lock is released and taken within one step of the server's clock, and its new holder
// dies. Hosts that looked in between remember that there is no lock, and nothing that they
// can ask for tells them better; but each can change the group for the others.
func TestDeadHolderBehindARememberedAbsence(t *testing.T) {
	t.Parallel()
	const tick, ttl = 500 * time.Millisecond, time.Second
	c := newCluster(t, 3, patient)
	c.server.Tick = tick
	place := c.newPlace(t)
	dying := c.results(t, c.hosts[0], place)
	heirs := []*fslock.Source{c.results(t, c.hosts[1], place), c.results(t, c.hosts[2], place)}
	for _, heir := range heirs {
		lock, err := multilock.TryAcquire(t.Context(), heir, "job", multilock.Options{})
		require.NoError(t, err)
		require.NoError(t, lock.Release(t.Context()))
	}
	for !c.takenInOneStep(t, place, tick, dying, heirs, ttl) {
	}
	taken := make(chan error, len(heirs))
	for _, heir := range heirs {
		go func() {
			lock, err := multilock.Acquire(within(t), heir, "job", multilock.Options{})
			if err == nil {
				err = lock.Release(within(t))
			}
			taken <- err
		}()
	}
	for range heirs {
		require.NoError(t, <-taken)
	}
}

// takenInOneStep has the lock taken by somebody who dies, right after the heirs saw that it is
// free. It reports false if the clock had another step meanwhile.
func (c *cluster) takenInOneStep(t *testing.T, place string, tick time.Duration, dying *fslock.Source, heirs []*fslock.Source, ttl time.Duration) bool {
	step := func() int64 { return time.Now().UnixNano() / int64(tick) }
	time.Sleep(tick - time.Duration(time.Now().UnixNano()%int64(tick)))
	begun := step()
	last, err := multilock.TryAcquire(t.Context(), dying, "job", multilock.Options{})
	require.NoError(t, err)
	require.NoError(t, last.Release(t.Context()))
	for _, heir := range heirs {
		seen, err := multilock.Inspect(t.Context(), heir, "job", multilock.Patience{})
		require.NoError(t, err)
		require.Equal(t, multilock.StateFree, seen.State)
	}
	lock, err := multilock.TryAcquire(t.Context(), dying, "job", multilock.Options{TTL: ttl, Detached: true})
	require.NoError(t, err)
	if step() == begun {
		require.NoError(t, lock.Detach())
		return true
	}
	require.NoError(t, lock.Release(t.Context()))
	return false
}
