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

// watchdog ends what would otherwise hang for ever. No test depends on it.
const watchdog = 2 * time.Minute

// lab is a server, and a client with a collection of its own.
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

// connect is a further client of the same collection. It repeats writes by itself
// only where that is what is tested, also with a real replica set.
func (l *lab) connect() *mongo.Collection {
	l.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(l.server.URI()).SetRetryWrites(l.options.ReplicaSet))
	require.NoError(l, err)
	l.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	return client.Database(l.server.Database()).Collection("locks")
}

// unlocked inserts a document that nobody has locked.
func (l *lab) unlocked(id string) {
	l.Helper()
	_, err := l.locks.InsertOne(l.ctx, bson.M{"_id": id, "locked": false, "n": 0})
	require.NoError(l, err)
}

// count adds 1 to the document's counter.
func (l *lab) count(ctx context.Context, id string) error {
	_, err := l.locks.UpdateOne(ctx, bson.M{"_id": id}, bson.M{"$inc": bson.M{"n": 1}})
	return err
}

// counted is what the counter says, without faults.
func (l *lab) counted(id string) int {
	l.Helper()
	l.server.Inject(nil)
	var document struct{ N int }
	require.NoError(l, l.locks.FindOne(l.ctx, bson.M{"_id": id}).Decode(&document))
	return document.N
}

// exchanges are those of one command.
func (l *lab) exchanges(name string) []mongolab.Exchange {
	var found []mongolab.Exchange
	for _, x := range l.server.Log() {
		if x.Name == name {
			found = append(found, x)
		}
	}
	return found
}

// unfinished are those that the server may still be working on.
func (l *lab) unfinished(name string) []mongolab.Exchange {
	return slices.DeleteFunc(l.exchanges(name), func(x mongolab.Exchange) bool { return x.Executed || x.Err != nil })
}

// eventually waits for a condition that is to come true.
func (l *lab) eventually(condition func() bool) {
	l.Helper()
	require.Eventually(l, condition, watchdog, time.Millisecond)
}
