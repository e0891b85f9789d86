package mongo_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/mongolab"
	"github.com/multilock/go/multilock"
)

// While a lock passes from one to the next and somebody always has one, no barrier
// opens.
func TestVacantSeesEveryHolder(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	c := l.collection()
	src, asker := l.open(c, "relay"), l.open(c, "relay")
	held := try(t, src, "leg0", multilock.Options{TTL: long})
	over := make(chan struct{})
	var asking sync.WaitGroup
	asking.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
			}
			vacant, err := asker.Vacant(within(t))
			if vacant || err != nil {
				t.Errorf("vacant: %t, %v", vacant, err)
				return
			}
		}
	})
	for leg := range 30 {
		next := try(t, src, fmt.Sprint("leg", (leg+1)%3), multilock.Options{TTL: long})
		require.NoError(t, held.Release(within(t)))
		held = next
	}
	close(over)
	asking.Wait()
	require.NoError(t, held.Release(within(t)))
	vacant, err := asker.Vacant(within(t))
	require.NoError(t, err)
	require.True(t, vacant)
}

// TestRevision: whatever happens to a result, the revision tells.
func TestRevision(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	c := l.collection()
	src, reader := l.open(c, "jobs"), l.open(c, "jobs")
	seen := map[string]bool{}
	changed := func() {
		t.Helper()
		revision, err := reader.Revision(within(t))
		require.NoError(t, err)
		require.False(t, seen[revision], "%q was the revision before", revision)
		seen[revision] = true
		again, err := reader.Revision(within(t))
		require.NoError(t, err)
		require.Equal(t, revision, again)
	}
	changed()
	lock, other := try(t, src, "one", multilock.Options{TTL: long}), try(t, src, "two", multilock.Options{TTL: long})
	for _, change := range []func() error{
		func() error { return lock.Commit(within(t), result(lock, 1)) },
		func() error { return lock.Commit(within(t), result(lock, 0)) },
		func() error { return other.Commit(within(t), result(other, 0)) },
		func() error { return lock.Forget(within(t)) },
		func() error { return lock.Commit(within(t), result(lock, 0)) },
	} {
		require.NoError(t, change())
		changed()
	}
	require.NoError(t, lock.Release(within(t)))
	require.NoError(t, other.Release(within(t)))
}
