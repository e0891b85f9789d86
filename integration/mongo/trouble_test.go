package mongo_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/multilock/go/integration/mongolab"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/mongolock"
	"github.com/multilock/go/multilock/source"
)

// A waiter whose time is over while no server is reachable reports both.
func TestTimeIsOverWhileTheServerIsAway(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	c := l.collection()
	src := l.open(c, "")
	lock := try(t, l.open(c, ""), "nightly", multilock.Options{TTL: long})
	requireState(t, src, "nightly", multilock.StateHeld)
	l.server.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := multilock.Acquire(ctx, src, "nightly", multilock.Options{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, l.server.Start())
	require.NoError(t, lock.Release(within(t)))
}

// A server that receives commands and never answers costs a caller only its time.
func TestSilentServer(t *testing.T) {
	for _, outcome := range []mongolab.Outcome{mongolab.Hung, mongolab.Mute} {
		l := newLab(t, mongolab.Options{})
		c := l.collection()
		src := l.open(c, "")
		requireState(t, src, "nightly", multilock.StateFree)
		l.server.Inject(mongolab.Every("update", mongolab.Fault{Outcome: outcome}))
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		_, err := multilock.Acquire(ctx, src, "nightly", multilock.Options{TTL: long})
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		l.server.Inject(nil)
	}
}

// A heartbeat without a reply is abandoned in time for another one, so the lock stays.
func TestHeartbeatsAreRepeated(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	src := l.open(l.collection(), "")
	lock := try(t, src, "nightly", multilock.Options{TTL: 4 * time.Second})
	before := l.server.Counts()
	l.server.Inject(mongolab.Nth("update", 0, mongolab.Fault{Outcome: mongolab.Hung}))
	require.Eventually(t, func() bool { return l.server.Counts().Since(before)["update"] >= 4 }, watchdog, eyeblink)
	require.NoError(t, lock.Context().Err())
	require.NoError(t, lock.Release(within(t)))
}

// A restart of the server, or a new primary, interrupts holders and waiters no longer than the outage
// itself.
func TestServerIsRestarted(t *testing.T) {
	for _, opt := range []mongolab.Options{{}, {ReplicaSet: true}} {
		l := newLab(t, opt)
		c := l.collection()
		holder, waiter := l.open(c, ""), l.open(c, "")
		lock := try(t, holder, "nightly", multilock.Options{TTL: long})
		got := make(chan error, 1)
		before := l.server.Counts()
		go func() {
			next, err := multilock.Acquire(within(t), waiter, "nightly", multilock.Options{Poll: 10 * time.Millisecond})
			if err == nil {
				err = next.Release(within(t))
			}
			got <- err
		}()
		require.Eventually(t, func() bool { return l.server.Counts().Since(before)["update"] >= 3 }, watchdog, eyeblink)
		l.server.Stop()
		require.NoError(t, l.server.Start())
		require.NoError(t, lock.Verify(within(t)))
		require.NoError(t, lock.Release(within(t)))
		require.NoError(t, <-got)
	}
}

const (
	unauthorized         mongolab.Code = 13
	authenticationFailed mongolab.Code = 18
)

func TestUserWhoMayNotWrite(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	c := l.collection()
	lock := try(t, l.open(c, ""), "weekly", multilock.Detached{Options: multilock.Options{TTL: long}})
	src := l.open(c, "")
	refuse := mongolab.Fault{Outcome: mongolab.Refused, Code: unauthorized}
	l.server.Inject(func(command mongolab.Command) mongolab.Fault {
		if command.Name == "update" || command.Name == "createIndexes" || command.Name == "listCollections" {
			return refuse
		}
		return mongolab.Fault{}
	})
	requireState(t, src, "weekly", multilock.StateHeld)
	_, err := multilock.TryAcquire(within(t), src, "nightly", multilock.Options{})
	require.ErrorContains(t, err, "readWrite")
	require.NotErrorIs(t, err, multilock.ErrUnsure, "an error reply leaves nothing in doubt")
	_, err = multilock.Break(within(t), src, "weekly", multilock.BreakOptions{Alive: true})
	require.ErrorContains(t, err, "readWrite")
	l.server.Inject(nil)
	require.NoError(t, lock.Release(within(t)))
}

// The index is optional: locks work without it, and Examine reports that it is missing.
func TestUserWhoMayNotMakeTheIndex(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	src := l.open(l.collection(), "")
	l.server.Inject(mongolab.Every("createIndexes", mongolab.Fault{Outcome: mongolab.Refused, Code: unauthorized}))
	lock := try(t, src, "nightly", multilock.Options{})
	require.NoError(t, lock.Release(within(t)))
	for _, f := range src.Examine(t.Context()) {
		if f.Subject == "index" {
			require.Equal(t, source.SeverityWarning, f.Severity)
			require.Contains(t, f.Advice, "commits: 1")
			return
		}
	}
	require.Fail(t, "nothing is said about the index")
}

// createIndexes blocks on a replica set with a member down, if the collection has documents.
func TestIndexThatIsNotFinished(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	c := l.collection()
	place := l.place(c)
	place.Timeout = 3 * time.Second // enough for everything else on a busy machine
	src := l.openWith(mongolock.Options{Place: place})
	l.server.Inject(mongolab.Every("createIndexes", mongolab.Fault{Outcome: mongolab.Hung}))
	lock := try(t, src, "nightly", multilock.Options{})
	require.NoError(t, lock.Release(within(t)))
	before := l.server.Counts()
	lock = try(t, src, "nightly", multilock.Options{})
	require.NoError(t, lock.Release(within(t)))
	require.Zero(t, l.server.Counts().Since(before)["createIndexes"], "the index is tried only once")
	for _, f := range src.Examine(t.Context()) {
		require.Equal(t, f.Subject == "index", strings.Contains(f.Text, "there may be no index"), f.Text)
	}
}

func TestWrongPassword(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	src := l.open(l.collection(), "")
	l.server.Inject(mongolab.Every("buildInfo", mongolab.Fault{Outcome: mongolab.Refused, Code: authenticationFailed}))
	_, err := multilock.TryAcquire(within(t), src, "nightly", multilock.Options{})
	require.ErrorContains(t, err, "check the user, the password and authSource")
	l.server.Inject(nil)
	lock := try(t, src, "nightly", multilock.Options{})
	require.NoError(t, lock.Release(within(t)), "the next attempt asks again")
}

func TestCollectionsThatCannotHoldLocks(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	c := l.collection()
	require.NoError(t, c.Database().CreateCollection(t.Context(), c.Name(), options.CreateCollection().SetCapped(true).SetSizeInBytes(1<<20)))
	_, err := multilock.TryAcquire(within(t), l.open(c, ""), "nightly", multilock.Options{})
	require.ErrorIs(t, err, multilock.ErrInvalid)
	require.ErrorContains(t, err, "capped")
}

// Another unique index may prevent acquiring a free lock. The error must not be that the lock is held.
func TestAnotherUniqueIndex(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	c := l.collection()
	_, err := c.InsertOne(t.Context(), bson.D{{Key: "_id", Value: "other"}, {Key: "locked", Value: false}, {Key: "owner", Value: nil}})
	require.NoError(t, err)
	_, err = c.Indexes().CreateOne(t.Context(), uniqueOwner())
	require.NoError(t, err)
	src := l.open(c, "")
	_, err = multilock.TryAcquire(within(t), src, "nightly", multilock.Options{})
	if err == nil {
		t.Skip("the server takes a missing field for unique")
	}
	require.NotErrorIs(t, err, multilock.ErrHeld)
	require.ErrorContains(t, err, "unique index besides")
}
