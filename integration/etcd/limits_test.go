package etcd_test

import (
	"crypto/sha256"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/etcdlab"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// TestLimits: the longest values of all records fit into a request within etcd's limit. Anything longer
// is rejected before anything is written.
func TestLimits(t *testing.T) {
	t.Parallel()
	c := etcdlab.Start(t, 1)
	place := prefix()
	src := open(t, c.Hosts(), place, "")
	ctx := within(t)
	long := strings.Repeat("<", source.MaxCommand) // six bytes each in JSON
	holder := source.Holder{Identity: process.Identity{Host: "h"}, Command: long}
	events := make([]source.Event, 64)
	for i := range events {
		events[i] = source.Event{Time: time.Now(), What: source.EventBroke, Name: "nightly", Command: long, Why: long, Output: long, Holder: &holder}
	}
	require.NoError(t, src.Record(ctx, events))
	n := 0
	for _, err := range src.History(ctx, time.Time{}) {
		require.NoError(t, err)
		n++
	}
	require.Len(t, events, n)

	mine := claim(time.Hour)
	mine.Holder, mine.Job = holder, true
	contender, err := src.Contend(ctx, "nightly", mine, source.StalePolicy{})
	require.NoError(t, err)
	lease, err := contender.Try(ctx)
	require.NoError(t, err)
	groups := make([]process.Group, source.MaxGroups)
	for i := range groups {
		groups[i] = process.Group{PGID: 1<<22 + i}
	}
	require.NoError(t, lease.MarkJob(ctx, groups...))
	require.NoError(t, lease.(source.Committer).Commit(ctx, source.Result{Name: "nightly", Command: long, Why: long, Output: long}))
	require.NoError(t, lease.Release(ctx))

	before := c.Count(t, place+"/manifest/")
	_, err = src.Publish(ctx, make([]byte, 64<<20+1))
	require.ErrorIs(t, err, multilock.ErrInvalid)
	require.ErrorContains(t, err, "cut it into several")
	require.Equal(t, before, c.Count(t, place+"/manifest/"))
	largest := []byte(strings.Repeat("a line of a list of jobs\n", 64<<20/25))
	kept, err := src.Publish(ctx, largest)
	require.NoError(t, err)
	require.Equal(t, sha256.Sum256(largest), sha256.Sum256(kept))
	read, err := open(t, c.Hosts(), place, "").Publish(ctx, []byte("another"))
	require.NoError(t, err)
	require.Equal(t, sha256.Sum256(largest), sha256.Sum256(read), "a later reader gets the first list")
	_, err = c.Client.Put(ctx, place+"/manifest//list", `{"v":1,"id":"x","parts":0,"sha256":"AAAA"}`)
	require.NoError(t, err)
	_, err = src.Publish(ctx, []byte("another"))
	require.ErrorContains(t, err, "is not what was published")
}

// TestFullStore: while the store is full, held locks can be renewed and released, new locks fail with
// an error that says why, and waiters continue once there is room.
func TestFullStore(t *testing.T) {
	t.Parallel()
	c := etcdlab.StartSmall(t, 1, 8<<20)
	ctx := within(t)
	src := open(t, c.Hosts(), prefix(), "")
	lock, other := hold(t, src, "nightly", multilock.Options{}), hold(t, src, "other", multilock.Options{})
	c.Fill("junk/")
	require.NoError(t, lock.Verify(ctx))
	require.NoError(t, lock.Release(ctx))
	_, err := multilock.TryAcquire(ctx, src, "nightly", multilock.Options{})
	require.ErrorIs(t, err, source.ErrPassing)
	require.ErrorContains(t, err, "the store is full")
	unusable := slices.ContainsFunc(src.Examine(ctx), func(f source.Finding) bool { return f.Severity == source.SeverityUnusable })
	require.True(t, unusable)

	done, troubles := make(chan error, 1), make(chan error, 1000)
	go func() {
		next, err := multilock.Acquire(ctx, src, "nightly", multilock.Options{Trouble: func(err error) { troubles <- err }})
		if err == nil {
			err = next.Release(ctx)
		}
		done <- err
	}()
	require.ErrorContains(t, <-troubles, "the store is full")
	c.Empty("junk/")
	require.NoError(t, <-done)
	require.NoError(t, other.Release(ctx))
}
