package etcd_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/multilock/go/integration/etcdlab"
	"github.com/multilock/go/multilock/source"
)

// TestAgeOfHistory: the age of events is measured in days that the server has counted, never by a
// host's clock. A clock that is months ahead or behind neither removes recent events nor keeps old
// ones.
func TestAgeOfHistory(t *testing.T) {
	t.Parallel()
	const day, keep = 24 * time.Hour, 90 * 24 * time.Hour
	c := etcdlab.Start(t, 1)
	place := prefix()
	src := open(t, c.Hosts(), place, "")
	ctx := within(t)
	record := func(name string, by time.Duration) {
		event := source.Event{Time: time.Now().Add(by), What: source.EventBroke, Name: name}
		require.NoError(t, src.Record(ctx, []source.Event{event}))
	}
	names := func() (names []string) {
		for e, err := range src.History(ctx, time.Time{}) {
			require.NoError(t, err)
			names = append(names, e.Name)
		}
		return names
	}
	passed := 0
	pass := func(days int) { // when the lease of the day's key expires, the next writer begins a new day
		for range days {
			passed++
			_, err := c.Client.Delete(ctx, place+"/day//now")
			require.NoError(t, err)
			record(fmt.Sprint("day ", passed), 0)
		}
	}
	record("ahead", 5*keep)
	record("behind", -5*keep)
	record("right", 0)
	require.Equal(t, 1, c.Count(t, place+"/day//mark/"), "the first event begins a day")
	require.Equal(t, 1, c.Count(t, place+"/day//now"))
	now, err := c.Client.Get(ctx, place+"/day//now")
	require.NoError(t, err)
	left, err := c.Client.TimeToLive(ctx, clientv3.LeaseID(now.Kvs[0].Lease))
	require.NoError(t, err)
	require.InDelta(t, day.Seconds(), left.GrantedTTL, 2)

	old, err := src.Expire(ctx, keep)
	require.NoError(t, err)
	require.Empty(t, old)
	pass(89)
	require.Contains(t, names(), "ahead")
	old, err = src.Expired(ctx, keep)
	require.NoError(t, err)
	require.Empty(t, old, "only 89 days are over")
	pass(3) // the writer that begins the next day removes everything older
	require.NotContains(t, names(), "ahead")
	require.NotContains(t, names(), "behind")
	require.NotContains(t, names(), "right")
	require.Contains(t, names(), "day 3")
	require.Equal(t, 91, c.Count(t, place+"/day//mark/"), "unneeded marks are removed")

	old, err = src.Expire(ctx, 5*day)
	require.NoError(t, err)
	require.Equal(t, []string{time.Now().UTC().Format(time.DateOnly)}, old, "dates by the writers' clocks")
	require.Equal(t, []string{"day 88", "day 89", "day 90", "day 91", "day 92"}, names())
	record("today", 0)
	_, err = src.Expire(ctx, 0)
	require.NoError(t, err)
	require.Equal(t, []string{"today"}, names(), "the current day stays")
}
