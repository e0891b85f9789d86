//go:build linux

package stalefs_test

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/stalefs"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/fslock/fslocktest"
	"github.com/multilock/go/multilock/locktest"
)

// conformanceTTL leaves a busy machine time for ten heartbeats.
const conformanceTTL = 2 * time.Second

// Runs the suite that every lock source must pass, with stale caches: each opened source uses the
// next host's mount.
// Rule: I1, I2, process-gone, silence, job, break, fence, commit, outcome, forget
func TestConformance(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, stalefs.Options{})
	locktest.Run(t, fixture(c, fslock.Options{}))
}

// Rule: I1, python
func TestConformanceWithLegacyPeers(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, stalefs.Options{})
	locktest.Run(t, fixture(c, fslock.Options{LegacyPeers: true}))
}

// fixture creates places on the cluster.
func fixture(c *cluster, opt fslock.Options) locktest.Fixture {
	f := fslocktest.Fixture(func(t testing.TB) func() fslock.Options {
		place := c.newPlace(t)
		var opened atomic.Int64
		return func() fslock.Options {
			h := c.hosts[opened.Add(1)%int64(len(c.hosts))]
			here := opt
			here.Base = h.on(place)
			return here
		}
	})
	f.TTL = conformanceTTL
	return f
}

// newPlace creates a base directory for locks, and returns its name.
func (c *cluster) newPlace(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(c.stored, "place-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	return filepath.Base(dir)
}
