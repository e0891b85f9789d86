package mongolab_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/mongolab"
)

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
