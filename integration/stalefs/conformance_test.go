//go:build linux

package stalefs_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/stalefs"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/locktest"
)

// conformanceTTL leaves a busy machine time for ten signs of life.
const conformanceTTL = 2 * time.Second

// The suite that every lock source passes, with stale caches: each source that is
// opened goes through another host's mount.
func TestConformance(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, stalefs.Options{})
	locktest.Run(t, fixture(c, fslock.Options{}))
}

func TestConformanceWithLegacyPeers(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, stalefs.Options{})
	locktest.Run(t, fixture(c, fslock.Options{LegacyPeers: true}))
}

// fixture makes places on the cluster, and demands that nothing is left in staging.
func fixture(c *cluster, opt fslock.Options) locktest.Fixture {
	return locktest.Fixture{
		TTL: conformanceTTL, Fences: true, Marks: true, Deaths: true,
		Odd:     []string{"tab\tand\nnewline", "\xff\xfe not utf-8", strings.Repeat("\u20ac", 82)},
		Refused: []string{".", "..", "a/b", "/", "nul\x00byte", strings.Repeat("x", 256)},
		Place: func(t testing.TB) func() multilock.Source {
			place := c.newPlace(t)
			var opened atomic.Int64
			open := func() *fslock.Source {
				h := c.hosts[opened.Add(1)%int64(len(c.hosts))]
				here := opt
				here.Base = h.on(place)
				src, err := fslock.Open(here)
				require.NoError(t, err)
				return src
			}
			t.Cleanup(func() {
				src := open()
				defer src.Close()
				left, err := src.Leftovers(context.Background())
				require.NoError(t, err)
				require.Empty(t, left)
			})
			return func() multilock.Source {
				src := open()
				t.Cleanup(func() { require.NoError(t, src.Close()) })
				return src
			}
		},
	}
}

// newPlace makes a base directory for locks, and gives its name.
func (c *cluster) newPlace(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(c.stored, "place-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o777))
	return filepath.Base(dir)
}
