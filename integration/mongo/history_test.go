package mongo_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multilock/go/integration/mongolab"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// numbered returns the n-th event of a writer.
func numbered(writer string, n int) source.Event {
	return source.Event{Time: time.Now(), What: source.EventAcquired, Name: writer, Attempt: n + 1}
}

// TestFollow has several hosts write while one reads: every event is read once, each writer's events in
// order, over many pages.
func TestFollow(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	c := l.collection()
	const writers, each = 3, 150
	reader := l.open(c, "group")
	follower := reader.Follow(time.Now().Add(-time.Hour))
	results := make(chan error)
	for w := range writers {
		src := l.open(c, "group")
		go func() {
			for n := 0; n < each; n += 1 + n%7 {
				var events []source.Event
				for i := n; i < min(n+1+n%7, each); i++ {
					events = append(events, numbered(fmt.Sprint(w), i))
				}
				if err := src.Record(within(t), events); err != nil {
					results <- err
					return
				}
			}
			results <- nil
		}()
	}
	seen := map[string]int{}
	take := func() int {
		events, err := follower.Next(within(t))
		require.NoError(t, err)
		for _, e := range events {
			seen[e.Name]++
			require.Equal(t, seen[e.Name], e.Attempt, "an event is missing or duplicated")
		}
		return len(events)
	}
	for done := 0; done < writers; {
		select {
		case err := <-results:
			require.NoError(t, err)
			done++
		default:
			take()
		}
	}
	for take() > 0 {
	}
	for w := range writers {
		require.Equal(t, each, seen[fmt.Sprint(w)])
	}
	events, err := source.Collect(reader.History(within(t), time.Now().Add(-time.Hour)))
	require.NoError(t, err)
	require.Len(t, events, writers*each)
	require.NoError(t, follower.Close())

	before := l.server.Counts()
	require.Zero(t, take())
	require.Equal(t, mongolab.Counts{"find": 1}, l.server.Counts().Since(before), "a poll without new events is one request")
}

func TestHistorySince(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	c := l.collection()
	src := l.open(c, "")
	old, fresh := numbered("old", 0), numbered("fresh", 0)
	old.Time = old.Time.Add(-48 * time.Hour)
	require.NoError(t, src.Record(within(t), []source.Event{old, fresh}))
	since := time.Now().Add(-time.Hour)
	events, err := source.Collect(src.History(within(t), since))
	require.NoError(t, err)
	require.Len(t, events, 1)
	require.Equal(t, "fresh", events[0].Name)
	follower := l.open(c, "").Follow(since)
	events, err = follower.Next(within(t))
	require.NoError(t, err)
	require.Len(t, events, 1)
	events, err = follower.Next(within(t))
	require.NoError(t, err)
	require.Empty(t, events)
	require.NoError(t, src.Record(within(t), []source.Event{numbered("fresh", 1)}))
	events, err = follower.Next(within(t))
	require.NoError(t, err)
	require.Len(t, events, 1)
	require.Equal(t, 2, events[0].Attempt)
}

// A page that another program wrote or changed yields no events, and does not end the reading.
func TestForeignPages(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	c := l.collection()
	src := l.open(c, "")
	history := c.Database().Collection(c.Name() + ".history")
	require.NoError(t, src.Record(within(t), []source.Event{numbered("own", 0)}))
	_, err := history.UpdateOne(t.Context(), bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: 1000}}}})
	require.NoError(t, err)
	for n, events := range []any{"none", bson.A{"x", nil}, nil} {
		_, err = history.InsertOne(t.Context(), bson.D{
			{Key: "_id", Value: fmt.Sprintf("/%012d", n+2)}, {Key: "n", Value: 1000}, {Key: "events", Value: events}, {Key: "last", Value: time.Now()},
		})
		require.NoError(t, err)
	}
	_, err = history.InsertOne(t.Context(), bson.D{{Key: "_id", Value: "/000000000999x"}, {Key: "n", Value: 1}, {Key: "events", Value: bson.A{}}, {Key: "last", Value: time.Now()}})
	require.NoError(t, err, "a document among the pages that is no page")
	require.NoError(t, l.open(c, "").Record(within(t), []source.Event{numbered("own", 1)}))

	follower, read := l.open(c, "").Follow(time.Now().Add(-time.Hour)), 0
	for range 3 {
		events, err := follower.Next(within(t))
		require.NoError(t, err)
		for _, e := range events {
			read++
			require.Equal(t, read, e.Attempt)
		}
	}
	require.Equal(t, 2, read)
	events, err := source.Collect(src.History(within(t), time.Now().Add(-time.Hour)))
	require.NoError(t, err)
	require.Len(t, events, 2)
}

// A job's documents stay small, whatever the job reports about itself.
func TestLongTextsAreCut(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	c := l.collection()
	src := l.open(c, "")
	text := strings.Repeat("漢", 1<<20)
	lock := try(t, src, "nightly", multilock.Options{Command: text, User: text})
	r := result(lock, 1)
	r.Why, r.Command = text, text
	require.NoError(t, lock.Commit(within(t), r))
	require.NoError(t, src.Record(within(t), []source.Event{{What: source.EventAcquired, Name: "nightly", Command: text, Why: text}}))
	found, err := lock.Outcome(within(t))
	require.NoError(t, err)
	require.Less(t, len(found.Why), 5<<10)
	require.NotEmpty(t, found.Why)
	raw, err := c.FindOne(t.Context(), map[string]string{"_id": "nightly"}).Raw()
	require.NoError(t, err)
	require.Less(t, len(raw), 20<<10)
	_, err = src.Publish(within(t), make([]byte, 16<<20))
	require.ErrorIs(t, err, multilock.ErrInvalid)
	require.NoError(t, lock.Release(within(t)))
}

// More names than fit into one reply of the server.
func TestManyNames(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	c := l.collection()
	src := l.open(c, "many")
	const names = 230
	var documents []any
	for n := range names {
		documents = append(documents, map[string]any{
			"_id": fmt.Sprintf("many/%04d", n), "group": "many", "locked": "token", "commits": 1, "result": map[string]any{"v": 1},
		})
	}
	_, err := c.InsertMany(t.Context(), documents)
	require.NoError(t, err)
	held, err := src.Names(within(t))
	require.NoError(t, err)
	require.Len(t, held, names)
	require.Equal(t, "0000", held[0])
	require.IsIncreasing(t, held)
	results, err := src.Results(within(t))
	require.NoError(t, err)
	require.Equal(t, held, results)
}

// While a lock passes from holder to holder and one of them always holds a lock, no barrier opens.
func TestEmptySeesEveryHolder(t *testing.T) {
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
			empty, err := asker.Empty(within(t))
			if empty || err != nil {
				t.Errorf("empty: %t, %v", empty, err)
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
	empty, err := asker.Empty(within(t))
	require.NoError(t, err)
	require.True(t, empty)
}

// Only a few pages of a history are read ahead, however long it is. Events that hosts wrote slightly
// out of order are returned in order.
func TestHistoryIsReadInPieces(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	src := l.open(l.collection(), "")
	const pages = 12
	events := make([]source.Event, pages*64)
	for i := range events {
		events[i] = numbered("x", i)
		events[i].Time = events[i].Time.Add(time.Duration(i^127) * time.Second) // reverses two pages at a time
	}
	require.NoError(t, src.Record(within(t), events))
	before, told := l.server.Counts(), 0
	for e, err := range src.History(within(t), time.Now().Add(-time.Hour)) {
		require.NoError(t, err)
		require.Equal(t, told^127, e.Attempt-1)
		if told++; told == 1 {
			require.Equal(t, mongolab.Counts{"find": 5}, l.server.Counts().Since(before))
		}
	}
	require.Equal(t, len(events), told)
}
