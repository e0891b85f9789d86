package remote_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

func eventsAt(minutes ...int) (events []source.Event) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, m := range minutes {
		events = append(events, source.Event{Time: start.Add(time.Duration(m) * time.Minute), What: source.EventBroke, Name: fmt.Sprint("job", m)})
	}
	return events
}

// Lists are split at a number of events and at a size, lose no events, and have the time of their
// last one.
func TestEventsAreCutIntoLists(t *testing.T) {
	events := eventsAt(3, 1, 2, 9, 8)
	for most, want := range map[int][]int{1: {1, 1, 1, 1, 1}, 2: {2, 2, 1}, 5: {5}, 64: {5}} {
		lists, err := remote.EncodeEvents(events, most, 1<<20)
		require.NoError(t, err)
		var sizes []int
		var all []source.Event
		for _, l := range lists {
			some := remote.DecodeEvents(l.Text, time.Time{})
			require.True(t, remote.Latest(some).Equal(l.Last))
			whole, err := json.Marshal(some)
			require.NoError(t, err)
			require.JSONEq(t, string(whole), string(l.Text))
			sizes, all = append(sizes, len(some)), append(all, some...)
		}
		require.Equal(t, want, sizes)
		require.Equal(t, events, all)
	}
	one, err := json.Marshal(events[0])
	require.NoError(t, err)
	lists, err := remote.EncodeEvents(events, 64, 2*len(one)+4)
	require.NoError(t, err)
	require.Len(t, lists, 3)
	lists, err = remote.EncodeEvents(events, 64, 1)
	require.NoError(t, err)
	require.Len(t, lists, 5, "one that is too long stands alone")
}

// A history is returned in the order of time, though its pages are slightly unordered, up to an
// error, and until the reader stops.
func TestHistoryInOrder(t *testing.T) {
	pages := [][]source.Event{eventsAt(5, 1), eventsAt(4, 2), eventsAt(3)}
	next := func(failing error) func() ([]source.Event, error) {
		n := -1
		return func() ([]source.Event, error) {
			if n++; n == len(pages) {
				return nil, failing
			}
			return pages[n], nil
		}
	}
	told, err := source.Collect(remote.InOrder(next(nil)))
	require.NoError(t, err)
	require.Equal(t, eventsAt(1, 2, 3, 4, 5), told)
	trouble := errors.New("no answer")
	_, err = source.Collect(remote.InOrder(next(trouble)))
	require.ErrorIs(t, err, trouble)
	for e := range remote.InOrder(next(nil)) {
		require.Equal(t, "job1", e.Name)
		break
	}
}

// A waiter sends no request after a failed attempt until it is notified; notifications count from
// the start of the attempt.
func TestNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var nobody *remote.News
		nobody.Begin()
		require.False(t, nobody.Quiet())
		n := remote.NewNews(time.Minute)
		require.False(t, n.Quiet(), "nothing was tried yet")
		n.Begin()
		n.Refused()
		require.True(t, n.Quiet())
		time.Sleep(time.Minute)
		require.False(t, n.Quiet(), "so long no news are believed")
		n.Begin()
		n.Tell()
		n.Tell()
		n.Refused()
		require.False(t, n.Quiet(), "it was told meanwhile")
		<-n.Wake()
		require.Empty(t, n.Wake())
		n.Begin()
		n.Refused()
		require.True(t, n.Quiet())
	})
}

// A lease ends once, for the first reason, and calls its OnEnd functions.
func TestHolding(t *testing.T) {
	h := remote.NewHolding(source.Record{Name: "nightly", Token: "t"}, boottime.Now())
	var ended []string
	h.OnEnd(func() { ended = append(ended, "before") })
	require.NoError(t, h.Ended())
	lost := h.Lost(errors.New("gone"))
	require.ErrorIs(t, lost, source.ErrLost)
	require.Equal(t, lost, h.End(lost))
	require.NoError(t, h.Close())
	require.Equal(t, lost, h.Ended())
	h.OnEnd(func() { ended = append(ended, "after") })
	require.Equal(t, []string{"before", "after"}, ended)
}

func TestJoin(t *testing.T) {
	self := process.Identity{Host: "h", PID: 7}
	m, err := remote.Options[string]{Group: "night", User: "ada", Self: self}.Join("pkg")
	require.NoError(t, err)
	require.Equal(t, "night", m.Group())
	require.Empty(t, m.Ungrouped().Group())
	require.Equal(t, self, m.Self())
	e := m.Broke(source.Record{Name: "x", Claim: source.Claim{Holder: source.Holder{User: "bob"}}}, "silent")[0]
	require.Equal(t, []string{"x", "ada", "bob", "silent"}, []string{e.Name, e.User, e.Holder.User, e.Why})
	_, err = remote.Options[string]{Group: "a/b"}.Join("pkg")
	require.ErrorIs(t, err, source.ErrInvalid)
	m, err = remote.Options[string]{}.Join("pkg")
	require.NoError(t, err)
	require.NotZero(t, m.Self().PID)
}

// An error names the step, and that the caller's context has ended; ErrInvalid is not wrapped.
func TestOpError(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	trouble, over := errors.New("no answer"), errors.New("time is over")
	require.NoError(t, remote.OpError(ctx, source.OpError{Op: "look"}))
	invalid := &source.InvalidError{What: "name"}
	require.Equal(t, error(invalid), remote.OpError(ctx, source.OpError{Op: "look", Err: invalid}))
	require.NotErrorIs(t, remote.OpError(ctx, source.OpError{Op: "look", Err: trouble}), over)
	cancel(over)
	err := remote.OpError(ctx, source.OpError{Source: "pkg", Op: "look", Err: trouble, Passing: true})
	require.ErrorIs(t, err, over)
	require.ErrorIs(t, err, trouble)
	require.ErrorIs(t, err, source.ErrPassing)
}

// A request outlives its caller's context for a while, but not its own limit.
func TestOutlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		request, done := remote.Outlive(ctx, time.Minute)
		cancel()
		<-request.Done()
		require.Equal(t, remote.Grace, time.Since(start))
		done()
		request, done = remote.Outlive(t.Context(), time.Minute)
		defer done()
		<-request.Done()
		require.Equal(t, remote.Grace+time.Minute, time.Since(start))
	})
	for given, want := range map[time.Duration]time.Duration{0: time.Hour, time.Second: time.Second} {
		timeout, err := remote.Timeout(given, time.Hour)
		require.NoError(t, err)
		require.Equal(t, want, timeout)
	}
	_, err := remote.Timeout(-1, time.Hour)
	require.ErrorIs(t, err, source.ErrInvalid)
	require.Equal(t, []time.Duration{time.Second, 5 * time.Second}, []time.Duration{remote.RenewalLimit(time.Second), remote.RenewalLimit(20 * time.Second)})
}

func TestSummaries(t *testing.T) {
	got := remote.Summaries(map[string]int{"b": 1, "": 0, "a": 2})
	require.True(t, slices.IsSortedFunc(got, func(a, b source.GroupSummary) int { return strings.Compare(a.Name, b.Name) }))
	require.Equal(t, source.GroupSummary{Name: "a", Held: 2}, got[1])
}
