package mongolab_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multilock/go/integration/mongolab"
)

// A server in the place of a real one: the proxy in front of it knows nothing of it
// but its URI.
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
	require.NotContains(t, names(), here.Database(), "nothing is left on a real server")
}
