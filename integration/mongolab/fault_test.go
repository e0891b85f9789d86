package mongolab_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/multilock/go/integration/mongolab"
)

// TestOutcomes checks, for each outcome, what the client sees and whether the document was changed.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	network := func(t *testing.T, err error) { require.True(t, mongo.IsNetworkError(err), "%v", err) }
	silence := func(t *testing.T, err error) { require.ErrorIs(t, err, context.Canceled) }
	refused := func(t *testing.T, err error) {
		var command mongo.CommandError
		require.ErrorAs(t, err, &command)
		require.Equal(t, int32(mongolab.PrimarySteppedDown), command.Code)
		require.Equal(t, "PrimarySteppedDown", command.Name)
	}
	unconfirmed := func(t *testing.T, err error) {
		var write mongo.WriteException
		require.ErrorAs(t, err, &write)
		require.Empty(t, write.WriteErrors)
		require.Equal(t, int(mongolab.WriteConcernFailed), write.WriteConcernError.Code)
	}
	tests := []struct {
		fault    mongolab.Fault
		seen     func(*testing.T, error)
		executed bool
	}{
		{mongolab.Fault{}, func(t *testing.T, err error) { require.NoError(t, err) }, true},
		{mongolab.Fault{Outcome: mongolab.Dropped}, network, false},
		{mongolab.Fault{Outcome: mongolab.Lost}, network, true},
		{mongolab.Fault{Outcome: mongolab.Zombie}, network, true},
		{mongolab.Fault{Outcome: mongolab.Hung}, silence, false},
		{mongolab.Fault{Outcome: mongolab.Mute}, silence, true},
		{mongolab.Fault{Outcome: mongolab.Refused, Code: mongolab.PrimarySteppedDown}, refused, false},
		{mongolab.Fault{Outcome: mongolab.Misreported, Code: mongolab.PrimarySteppedDown}, refused, true},
		{mongolab.Fault{Outcome: mongolab.Unconfirmed, Code: mongolab.WriteConcernFailed}, unconfirmed, true},
	}
	for _, test := range tests {
		t.Run(test.fault.Outcome.String(), func(t *testing.T) {
			t.Parallel()
			l := newLab(t, mongolab.Options{})
			l.unlocked("lock")
			ctx, giveUp := context.WithCancel(l.ctx)
			defer giveUp()
			if o := test.fault.Outcome; o == mongolab.Hung || o == mongolab.Mute {
				test.fault.Before = func(context.Context) { giveUp() }
			}
			l.server.Inject(mongolab.Nth("update", 1, test.fault))
			require.NoError(t, l.count(l.ctx, "lock"))
			test.seen(t, l.count(ctx, "lock"))

			l.eventually(func() bool { return l.exchanges("update")[1].Executed == test.executed })
			want := 1
			if test.executed {
				want = 2
			}
			require.Equal(t, want, l.counted("lock"))
			require.Len(t, l.exchanges("update"), 2, "the driver does not retry")
		})
	}
}

func TestZombieWaitsForItsTime(t *testing.T) {
	t.Parallel()
	l := newLab(t, mongolab.Options{})
	l.unlocked("lock")
	rise := make(chan struct{})
	l.server.Inject(mongolab.Nth("update", 0, mongolab.Fault{Outcome: mongolab.Zombie, Before: mongolab.Until(rise)}))
	require.True(t, mongo.IsNetworkError(l.count(l.ctx, "lock")))
	require.Equal(t, 0, l.counted("lock"))
	close(rise)
	l.eventually(func() bool { return l.exchanges("update")[0].Executed })
	require.Equal(t, 1, l.counted("lock"))
}

func TestCommandsAreNumberedAndCounted(t *testing.T) {
	t.Parallel()
	l := newLab(t, mongolab.Options{})
	l.unlocked("lock")
	l.server.Inject(nil)
	before := l.server.Counts()
	require.NoError(t, l.count(l.ctx, "lock"))
	require.NoError(t, l.locks.FindOne(l.ctx, bson.M{"_id": "lock"}).Err())
	require.NoError(t, l.count(l.ctx, "lock"))
	require.NoError(t, l.locks.Database().RunCommand(l.ctx, bson.M{"hello": 1}).Err(), "a requested hello is not upkeep")

	since := l.server.Counts().Since(before)
	require.Equal(t, mongolab.Counts{"update": 2, "find": 1, "hello": 1}, since)

	updates := l.exchanges("update")
	require.Equal(t, []int{0, 2}, []int{updates[0].N, updates[1].N})
	require.Equal(t, []int{0, 1}, []int{updates[0].Nth, updates[1].Nth})
	require.Len(t, updates[0].Session, 32)
	require.Zero(t, updates[0].TxnNumber, "no retries without a replica set")
}

// When clients are cut off, the next command must wait until the server has finished the old one.
func TestCuttingConnectionsLosesNoCount(t *testing.T) {
	t.Parallel()
	l := newLab(t, mongolab.Options{})
	l.unlocked("lock")
	const rounds, clients = 4, 8
	for range rounds {
		l.server.Inject(mongolab.Nth("update", clients/2, mongolab.Fault{
			After: func(context.Context) { l.server.CutConnections() },
		}))
		var group sync.WaitGroup
		for range clients {
			group.Go(func() { _ = l.count(l.ctx, "lock") }) // some clients are cut off
		}
		group.Wait()
	}
	l.eventually(func() bool { return len(l.unfinished("update")) == 0 })
	executed := 0
	for _, x := range l.exchanges("update") {
		if x.Executed {
			executed++
		}
	}
	require.GreaterOrEqual(t, executed, rounds)
	require.Equal(t, executed, l.counted("lock"))
}
