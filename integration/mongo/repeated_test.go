package mongo_test

import (
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

// hideFirst has the first write of a name carried out without an answer. What the
// driver then sends again by itself meets a server that is not the primary, whose
// answer says nothing about the first one.
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
	place.Timeout = 1500 * time.Millisecond // a driver waits for half a second between two attempts
	src := l.openWith(mongolock.Options{Place: place})
	requireState(t, src, "nightly", multilock.StateFree)

	l.hideFirst("update")
	lock := try(t, src, "nightly", multilock.Options{TTL: long, Detached: true})
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
	require.Equal(t, "one", string(value), "it was swapped in, so nobody may say that it was not")
}

// Whoever asks for a lock in the middle of a transaction gets one that all others
// see at once, and that does not go away with the transaction.
func TestTransactionOfTheCaller(t *testing.T) {
	l := newLab(t, mongolab.Options{ReplicaSet: true})
	c := l.collection()
	src := l.openWith(mongolock.Options{Place: mongolock.Place{Collection: c, BehindSerialisingProxy: !l.server.Real()}})
	session, err := l.client.StartSession()
	require.NoError(t, err)
	defer session.EndSession(t.Context())
	require.NoError(t, session.StartTransaction())
	ctx := mongo.NewSessionContext(within(t), session)

	lock, err := multilock.TryAcquire(ctx, src, "nightly", multilock.Options{TTL: long, Detached: true})
	require.NoError(t, err)
	number, err := lock.Fence(ctx)
	require.NoError(t, err)
	require.Positive(t, number)
	require.NoError(t, session.AbortTransaction(t.Context()))
	for _, x := range l.server.Log() {
		require.NotEqual(t, "abortTransaction", x.Name, "something was done in the transaction")
	}
	require.NoError(t, lock.Verify(within(t)))
	require.Equal(t, lock.Record().Token, l.raw(c, "nightly")["locked"])
	require.NoError(t, lock.Release(within(t)))
}

// A contender takes back what is in doubt for a limited time: to a server that does
// not answer it is sent once.
func TestWithdrawalIsNotRepeated(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	src := l.open(l.collection(), "")
	requireState(t, src, "nightly", multilock.StateFree)
	contender, err := src.Contend(within(t), "nightly", source.Claim{TTL: long}, multilock.Patience{})
	require.NoError(t, err)
	l.server.Inject(mongolab.Every("update", mongolab.Fault{Outcome: mongolab.Dropped}))
	_, err = contender.Try(within(t))
	require.ErrorIs(t, err, multilock.ErrUnsure)

	l.server.Inject(mongolab.Every("update", mongolab.Fault{Outcome: mongolab.Hung}))
	before := l.server.Counts()
	require.Error(t, contender.Close())
	require.Equal(t, mongolab.Counts{"update": 1}, l.server.Counts().Since(before))
}
