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

// TestAgeOfHistory: what is old is told by the days that the server has counted, and by no host's clock:
// one that is months ahead, or behind, takes nothing away that is young, and keeps nothing that is not.
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
	pass := func(days int) { // the key of the day goes when its lease ends: then somebody begins another
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
	require.Equal(t, 1, c.Count(t, place+"/day//mark/"), "a day has begun with the first of them")
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
	require.Empty(t, old, "89 days are over, and the 90th is not")
	pass(3) // who begins the next removes what was before them all
	require.NotContains(t, names(), "ahead")
	require.NotContains(t, names(), "behind")
	require.NotContains(t, names(), "right")
	require.Contains(t, names(), "day 3")
	require.Equal(t, 91, c.Count(t, place+"/day//mark/"), "nor is a mark kept that nobody needs")

	old, err = src.Expire(ctx, 5*day)
	require.NoError(t, err)
	require.Equal(t, []string{time.Now().UTC().Format(time.DateOnly)}, old, "as the days of those who wrote them")
	require.Equal(t, []string{"day 88", "day 89", "day 90", "day 91", "day 92"}, names())
	record("today", 0)
	_, err = src.Expire(ctx, 0)
	require.NoError(t, err)
	require.Equal(t, []string{"today"}, names(), "the day that is not over stays")
}
