package mongo_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/multilock/go/integration/mongolab"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/mongolock"
	"github.com/multilock/go/multilock/source"
)

// hideFirst executes the first write with this name without a reply. The driver's retry then reaches a
// server that is not the primary, whose reply says nothing about the first attempt.
func (l *lab) hideFirst(name string) {
	var mu sync.Mutex
	var first mongolab.Command
	l.server.Inject(func(c mongolab.Command) mongolab.Fault {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case c.Name == name && c.Nth == 0:
			first = c
			return mongolab.Fault{Outcome: mongolab.Lost}
		case c.TxnNumber != 0 && c.Session == first.Session && c.TxnNumber == first.TxnNumber:
			return mongolab.Fault{Outcome: mongolab.Refused, Code: mongolab.NotWritablePrimary}
		}
		return mongolab.Fault{}
	})
}

func TestRefusalOfARepetitionProvesNothing(t *testing.T) {
	l := newLab(t, mongolab.Options{ReplicaSet: true})
	c := l.collection()
	place := l.place(c)
	place.Timeout = 5 * time.Second // a driver waits half a second between two attempts
	src := l.openWith(mongolock.Options{Place: place})
	requireState(t, src, "nightly", multilock.StateFree)

	l.hideFirst("update")
	lock := try(t, src, "nightly", multilock.Detached{Options: multilock.Options{TTL: long}})
	require.Equal(t, lock.Record().Token, l.raw(c, "nightly")["locked"])
	l.hideFirst("update")
	require.NoError(t, lock.Commit(within(t), result(lock, 1)))
	l.hideFirst("update")
	require.NoError(t, lock.Release(within(t)))
	l.server.Inject(nil)
	requireState(t, src, "nightly", multilock.StateFree)

	register := l.register(place, "oven")
	l.hideFirst("findAndModify")
	_, _, err := register.Swap(within(t), []byte("one"))
	require.ErrorIs(t, err, multilock.ErrUnsure)
	l.server.Inject(nil)
	value, _, err := register.Peek(within(t))
	require.NoError(t, err)
	require.Equal(t, "one", string(value), "the swap took place, so the error must not deny it")
}

// A lock acquired in the middle of a transaction is visible to all others at once, and does not vanish
// with the transaction.
func TestTransactionOfTheCaller(t *testing.T) {
	l := newLab(t, mongolab.Options{ReplicaSet: true})
	c := l.collection()
	src := l.openWith(mongolock.Options{Place: mongolock.Place{Collection: c, BehindSerialisingProxy: !l.server.Real()}})
	session, err := l.client.StartSession()
	require.NoError(t, err)
	defer session.EndSession(t.Context())
	require.NoError(t, session.StartTransaction())
	ctx := mongo.NewSessionContext(within(t), session)

	lock, err := multilock.TryAcquire(ctx, src, "nightly", multilock.Detached{Options: multilock.Options{TTL: long}})
	require.NoError(t, err)
	number, err := lock.Fence(ctx)
	require.NoError(t, err)
	require.Positive(t, number)
	require.NoError(t, session.AbortTransaction(t.Context()))
	for _, x := range l.server.Log() {
		require.NotEqual(t, "abortTransaction", x.Name, "the lock did something in the transaction")
	}
	require.NoError(t, lock.Verify(within(t)))
	require.Equal(t, lock.Record().Token, l.raw(c, "nightly")["locked"])
	require.NoError(t, lock.Release(within(t)))
}

// A contender withdraws an attempt in doubt within a limited time: if the server does not answer, it
// does not retry.
func TestWithdrawalIsNotRepeated(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	src := l.open(l.collection(), "")
	requireState(t, src, "nightly", multilock.StateFree)
	contender, err := src.Contend(within(t), "nightly", source.Claim{TTL: long}, multilock.StalePolicy{})
	require.NoError(t, err)
	l.server.Inject(mongolab.Every("update", mongolab.Fault{Outcome: mongolab.Dropped}))
	_, err = contender.Try(within(t))
	require.ErrorIs(t, err, multilock.ErrUnsure)

	l.server.Inject(mongolab.Every("update", mongolab.Fault{Outcome: mongolab.Hung}))
	before := l.server.Counts()
	require.Error(t, contender.Close())
	require.Equal(t, mongolab.Counts{"update": 1}, l.server.Counts().Since(before))
}

// lateAttempt delays a contender's first upsert until the contender has seen that it did not take
// place, and executes it right before the second upsert.
func lateAttempt(l *lab) {
	stuck, done := make(chan struct{}), make(chan struct{})
	l.server.Inject(func(c mongolab.Command) mongolab.Fault {
		if c.Name != "update" {
			return mongolab.Fault{}
		}
		switch c.Nth {
		case 0:
			return mongolab.Fault{Outcome: mongolab.Zombie, Before: mongolab.Until(stuck)}
		case 2:
			return mongolab.Fault{Before: func(ctx context.Context) {
				close(stuck)
				go l.awaitZombie(done)
				mongolab.Until(done)(ctx)
			}}
		}
		return mongolab.Fault{}
	})
}

// awaitZombie closes done when a delayed command was executed.
func (l *lab) awaitZombie(done chan<- struct{}) {
	defer close(done)
	require.Eventually(l, func() bool {
		for _, x := range l.server.Log() {
			if x.Outcome == mongolab.Zombie && x.Reply != nil {
				return true
			}
		}
		return false
	}, watchdog, eyeblink)
}

// A contender that finds its own late attempt adopts the lock, and does not wait for it.
func TestLateAttemptIsAdopted(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	c := l.collection()
	src := l.open(c, "")
	requireState(t, src, "nightly", multilock.StateFree)
	lateAttempt(l)
	lock := try(t, src, "nightly", multilock.Detached{Options: multilock.Options{TTL: long}})
	l.server.Inject(nil)
	require.Equal(t, lock.Record().Token, l.raw(c, "nightly")["locked"])
	require.NoError(t, lock.Verify(within(t)))
	require.NoError(t, lock.Release(within(t)))
}

// A contender that does not inspect the lock gets an error, and withdraws its late attempt.
func TestLateAttemptIsTakenBack(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	c := l.collection()
	src := l.open(c, "")
	requireState(t, src, "nightly", multilock.StateFree)
	lateAttempt(l)
	_, err := multilock.TryOnce(within(t), src, "nightly", multilock.Options{TTL: long})
	require.ErrorIs(t, err, multilock.ErrHeld)
	l.server.Inject(nil)
	requireState(t, src, "nightly", multilock.StateFree)
}

// A late command of a broken holder does not revive it, because each attempt has a new token.
func TestLateAttemptRevivesNobody(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	c := l.collection()
	src := l.open(c, "")
	requireState(t, src, "nightly", multilock.StateFree)
	stuck, done := make(chan struct{}), make(chan struct{})
	l.server.Inject(mongolab.Nth("update", 0, mongolab.Fault{Outcome: mongolab.Zombie, Before: mongolab.Until(stuck)}))
	lock := try(t, src, "nightly", multilock.Detached{Options: multilock.Options{TTL: long}})
	_, err := multilock.Break(within(t), l.open(c, ""), "nightly", multilock.BreakOptions{Alive: true})
	require.NoError(t, err)
	close(stuck)
	l.awaitZombie(done)
	requireState(t, src, "nightly", multilock.StateHeld)
	require.ErrorIs(t, lock.Verify(within(t)), multilock.ErrLost)
	_ = lock.Detach()
}
