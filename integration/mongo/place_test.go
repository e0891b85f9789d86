package mongo_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/multilock/go/integration/engine"
	"github.com/multilock/go/integration/mongolab"
	"github.com/multilock/go/internal/testkit/actor"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/mongolock"
	"github.com/multilock/go/multilock/source"
)

const watchdog = engine.Watchdog

// lab is a server with collections.
type lab struct {
	testing.TB
	server *mongolab.Server
	client *mongo.Client // for inspecting the store directly, and for other programs
	places atomic.Int64
}

func newLab(tb testing.TB, opt mongolab.Options) *lab {
	tb.Helper()
	l := &lab{TB: tb, server: mongolab.Start(tb, opt)}
	l.client = l.connect()
	return l
}

// connect connects like any program with the driver.
func (l *lab) connect() *mongo.Client {
	l.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(l.server.URI()))
	require.NoError(l, err)
	l.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	return client
}

// collection returns a new collection, because FerretDB reads all documents of a collection.
func (l *lab) collection() *mongo.Collection {
	return l.client.Database(l.server.Database()).Collection(fmt.Sprintf("locks%d", l.places.Add(1)))
}

// url returns a source's URL for a collection behind the proxy.
func (l *lab) url(c *mongo.Collection) string {
	head, query, _ := strings.Cut(l.server.URI(), "?")
	head = strings.TrimSuffix(head, "/")
	if at := strings.LastIndex(head, "/"); at > len("mongodb://") {
		head = head[:at]
	}
	return head + "/" + c.Database().Name() + "." + c.Name() + "?" + query
}

// open opens a collection like another process, with its own connections.
func (l *lab) open(c *mongo.Collection, group string) *mongolock.Source {
	l.Helper()
	return l.openWith(mongolock.Options{Place: l.place(c), Group: group})
}

func (l *lab) openWith(opt mongolock.Options) *mongolock.Source {
	l.Helper()
	src, err := mongolock.Open(opt)
	require.NoError(l, err)
	l.Cleanup(func() { _ = src.Close() })
	return src
}

func (l *lab) place(c *mongo.Collection) mongolock.Place {
	return mongolock.Place{URL: l.url(c), BehindSerialisingProxy: !l.server.Real()}
}

// raw returns the stored document of a lock, nil for a free lock.
func (l *lab) raw(c *mongo.Collection, id string) bson.M {
	l.Helper()
	var doc bson.M
	err := c.FindOne(context.Background(), bson.D{{Key: "_id", Value: id}}).Decode(&doc)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return nil
	}
	require.NoError(l, err)
	return doc
}

func within(tb testing.TB) context.Context { return engine.Within(tb) }

func try(tb testing.TB, src multilock.Source, name string, opt multilock.Terms) *multilock.Lock {
	tb.Helper()
	lock, err := multilock.TryAcquire(within(tb), src, name, opt)
	require.NoError(tb, err)
	return lock
}

// claim returns a claim with this TTL and no holder's process.
func claim(ttl time.Duration) source.Claim { return engine.Claim(ttl) }

// leased acquires a free lock that nothing renews.
func leased(tb testing.TB, src multilock.Source, name string, c source.Claim) source.Lease {
	tb.Helper()
	contender, err := src.Contend(within(tb), name, c, multilock.StalePolicy{})
	require.NoError(tb, err)
	lease, err := contender.Try(within(tb))
	require.NoError(tb, err)
	require.NoError(tb, contender.Close())
	return lease
}

func requireState(tb testing.TB, src multilock.Source, name string, want source.State) multilock.Observation {
	tb.Helper()
	seen, err := multilock.Inspect(within(tb), src, name, multilock.StalePolicy{})
	require.NoError(tb, err)
	require.Equal(tb, want, seen.State, seen.Why)
	return seen
}

// TestMain runs more tests in parallel than there are processors, because most of them only wait: after
// a fault a driver waits half a second before it asks the server again. An option on the command line
// wins.
func TestMain(m *testing.M) {
	actor.Play(map[string]func() error{"worker": playWorker})
	if err := flag.Set("test.parallel", "16"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
