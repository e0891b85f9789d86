package mongolab_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/multilock/go/integration/mongolab"
)

// With a replica set the driver retries a write, and the server executes it once, whatever happened to
// the first attempt.
func TestDriverRepeatsWrites(t *testing.T) {
	t.Parallel()
	tests := []struct {
		fault    mongolab.Fault
		repeated bool // whether the first attempt was executed
	}{
		{mongolab.Fault{Outcome: mongolab.Dropped}, false},
		{mongolab.Fault{Outcome: mongolab.Lost}, true},
		{mongolab.Fault{Outcome: mongolab.Refused, Code: mongolab.NotWritablePrimary}, false},
		{mongolab.Fault{Outcome: mongolab.Misreported, Code: mongolab.InterruptedDueToReplStateChange}, true},
		{mongolab.Fault{Outcome: mongolab.Unconfirmed, Code: mongolab.ShutdownInProgress}, true},
	}
	for _, test := range tests {
		t.Run(test.fault.Outcome.String(), func(t *testing.T) {
			t.Parallel()
			l := newLab(t, mongolab.Options{ReplicaSet: true})
			l.unlocked("lock")
			l.server.Inject(mongolab.Nth("update", 0, test.fault))
			require.NoError(t, l.count(l.ctx, "lock"))

			updates := l.exchanges("update")
			require.Len(t, updates, 2)
			require.NotZero(t, updates[0].TxnNumber)
			require.Equal(t, updates[0].TxnNumber, updates[1].TxnNumber)
			require.Equal(t, test.repeated, updates[0].Executed)
			require.Equal(t, test.repeated, updates[1].Repeated)
			require.NotEqual(t, updates[1].Repeated, updates[1].Executed)
			require.Equal(t, 1, l.counted("lock"))
		})
	}
}

// A delayed write that arrives after newer writes of its session is not executed.
func TestStuckWriteIsTooOld(t *testing.T) {
	t.Parallel()
	l := newLab(t, mongolab.Options{ReplicaSet: true})
	l.unlocked("lock")
	session, err := l.locks.Database().Client().StartSession()
	require.NoError(t, err)
	defer session.EndSession(l.ctx)
	ctx := mongo.NewSessionContext(l.ctx, session)
	impatient, giveUp := context.WithCancel(ctx)
	arrive := make(chan struct{})
	l.server.Inject(mongolab.Nth("update", 0, mongolab.Fault{
		Outcome: mongolab.Mute,
		Before: func(ctx context.Context) {
			giveUp()
			mongolab.Until(arrive)(ctx)
		},
	}))
	require.ErrorIs(t, l.count(impatient, "lock"), context.Canceled)
	require.NoError(t, l.count(ctx, "lock"))

	close(arrive)
	l.eventually(func() bool { return l.exchanges("update")[0].Reply != nil })
	stuck := l.exchanges("update")[0]
	require.Equal(t, int32(mongolab.TransactionTooOld), stuck.Reply.Lookup("code").Int32())
	require.False(t, stuck.Executed)
	require.Equal(t, 1, l.counted("lock"))
}
