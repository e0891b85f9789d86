package mongolab_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/multilock/go/integration/mongolab"
)

// watchdog stops a test that would otherwise hang. No test depends on its length.
const watchdog = 2 * time.Minute

// lab is a server, and a client with its own collection.
type lab struct {
	*testing.T
	ctx     context.Context //nolint:containedctx // the test's own
	options mongolab.Options
	server  *mongolab.Server
	locks   *mongo.Collection
}

func newLab(t *testing.T, opt mongolab.Options) *lab {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	t.Cleanup(cancel)
	l := &lab{T: t, ctx: ctx, options: opt, server: mongolab.Start(t, opt)}
	l.locks = l.connect()
	return l
}

// connect returns another client's collection. The client retries writes only in tests of retries, even
// on a real replica set.
func (l *lab) connect() *mongo.Collection {
	l.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(l.server.URI()).SetRetryWrites(l.options.ReplicaSet))
	require.NoError(l, err)
	l.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	return client.Database(l.server.Database()).Collection("locks")
}

// unlocked inserts an unlocked document.
func (l *lab) unlocked(id string) {
	l.Helper()
	_, err := l.locks.InsertOne(l.ctx, bson.M{"_id": id, "locked": false, "n": 0})
	require.NoError(l, err)
}

// count increments the document's counter.
func (l *lab) count(ctx context.Context, id string) error {
	_, err := l.locks.UpdateOne(ctx, bson.M{"_id": id}, bson.M{"$inc": bson.M{"n": 1}})
	return err
}

// counted ends all faults and returns the counter.
func (l *lab) counted(id string) int {
	l.Helper()
	l.server.Inject(nil)
	var document struct{ N int }
	require.NoError(l, l.locks.FindOne(l.ctx, bson.M{"_id": id}).Decode(&document))
	return document.N
}

// exchanges returns the logged exchanges of one command.
func (l *lab) exchanges(name string) []mongolab.Exchange {
	var found []mongolab.Exchange
	for _, x := range l.server.Log() {
		if x.Name == name {
			found = append(found, x)
		}
	}
	return found
}

// unfinished returns the exchanges that the server may still be working on.
func (l *lab) unfinished(name string) []mongolab.Exchange {
	return slices.DeleteFunc(l.exchanges(name), func(x mongolab.Exchange) bool { return x.Executed || x.Err != nil })
}

// eventually waits until a condition is true.
func (l *lab) eventually(condition func() bool) {
	l.Helper()
	require.Eventually(l, condition, watchdog, time.Millisecond)
}
