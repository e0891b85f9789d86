package mongolab_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/multilock/go/integration/mongolab"
)

// winners lets many clients lock one document that is there and unlocked, at the
// same time. The condition and the change are in one command, so that MongoDB lets
// one of them win, and tells the others that the _id is taken.
func (l *lab) winners(id string) int {
	const crowd = 16
	upsert := options.UpdateOne().SetUpsert(true)
	var won atomic.Int64
	var group sync.WaitGroup
	start := make(chan struct{})
	for range crowd {
		group.Go(func() {
			<-start
			_, err := l.locks.UpdateOne(l.ctx, bson.M{"_id": id, "locked": false}, bson.M{"$set": bson.M{"locked": true}}, upsert)
			if err == nil {
				won.Add(1)
			} else if !mongo.IsDuplicateKeyError(err) {
				l.Errorf("neither won nor lost: %v", err)
			}
		})
	}
	close(start)
	group.Wait()
	return int(won.Load())
}

// This is why there is a proxy. If it ever fails, the embedded server has learnt to
// update atomically, and need not be serialised any more.
func TestEmbeddedServerAloneLetsSeveralWin(t *testing.T) {
	t.Parallel()
	l := newLab(t, mongolab.Options{Concurrent: true})
	const enough = 50 // nearly every round has several winners
	for round := range enough {
		id := fmt.Sprintf("lock%d", round)
		l.unlocked(id)
		if l.winners(id) > 1 {
			return
		}
	}
	t.Fatalf("in none of %d rounds was a document locked twice", enough)
}

func TestOneWins(t *testing.T) {
	t.Parallel()
	l := newLab(t, mongolab.Options{})
	for round := range 30 {
		id := fmt.Sprintf("lock%d", round)
		l.unlocked(id)
		require.Equal(t, 1, l.winners(id))
	}
}

// Cutting clients off must not let the next command begin while the server still
// works on the old one.
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
			group.Go(func() { _ = l.count(l.ctx, "lock") }) // some are cut off
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
