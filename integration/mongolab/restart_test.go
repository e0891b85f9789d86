package mongolab_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/multilock/go/integration/mongolab"
)

// Commands that are delayed when the server stops are not executed after its restart.
func TestStopDropsWhatIsHeldUp(t *testing.T) {
	t.Parallel()
	l := newLab(t, mongolab.Options{})
	l.unlocked("lock")
	l.server.Inject(mongolab.Nth("update", 0, mongolab.Fault{Before: mongolab.Until(nil)}))
	answered := make(chan error, 1)
	go func() { answered <- l.count(l.ctx, "lock") }()
	l.eventually(func() bool { return len(l.exchanges("update")) == 1 })

	l.server.Stop()
	require.True(t, mongo.IsNetworkError(<-answered))
	require.NoError(t, l.server.Start())
	require.Equal(t, 0, l.counted("lock"))
}

// A driver that is about to retry a write when the server stops retries it after the restart. A real
// server keeps its record of executed writes on disk.
func TestRepetitionAfterARestart(t *testing.T) {
	t.Parallel()
	for n, again := 0, true; again; n++ {
		require.Less(t, n, 5)
		l := newLab(t, mongolab.Options{ReplicaSet: true})
		l.unlocked("lock")
		l.server.Inject(mongolab.Nth("update", 0, mongolab.Fault{After: mongolab.Until(nil)}))
		answered := make(chan error, 1)
		go func() { answered <- l.count(l.ctx, "lock") }()
		l.eventually(func() bool { return len(l.exchanges("update")) == 1 && l.exchanges("update")[0].Executed })
		l.server.Stop()
		require.NoError(t, l.server.Start())
		err := <-answered
		// If the driver's monitor is answered while Stop cuts one connection after the other, the driver
		// makes its only second try before the start.
		if again = mongo.IsNetworkError(err); !again {
			require.NoError(t, err)
			require.True(t, l.exchanges("update")[1].Repeated)
			require.Equal(t, 1, l.counted("lock"))
		}
	}
}

// The embedded server of another lab stands in for a real one: the proxy in front of it knows only its
// URI.
func TestServerOfAnotherProcess(t *testing.T) {
	t.Parallel()
	there := newLab(t, mongolab.Options{})
	here, err := mongolab.Open(mongolab.Options{Server: there.server.URI()})
	require.NoError(t, err)
	l := &lab{T: t, ctx: there.ctx, server: here}
	l.locks = l.connect()
	l.unlocked("lock")

	here.Inject(mongolab.Nth("update", 0, mongolab.Fault{Outcome: mongolab.Lost}))
	require.Error(t, l.count(l.ctx, "lock"))
	require.Equal(t, 1, l.counted("lock"))
	here.Stop()
	require.NoError(t, here.Start())
	l.locks = l.connect()
	require.Equal(t, 1, l.counted("lock"))

	names := func() []string {
		names, err := there.locks.Database().Client().ListDatabaseNames(there.ctx, bson.M{})
		require.NoError(t, err)
		return names
	}
	require.Contains(t, names(), here.Database())
	require.NoError(t, here.Close())
	require.NotContains(t, names(), here.Database(), "the database is dropped from a real server")
}
