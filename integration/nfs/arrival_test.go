package nfs_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/shareddir"
)

// Forty contenders arrive at a new base at once, as in the first minute of a cron line, and each of
// them has to create what the others create, too. None of them fails, and the filesystem test
// leaves nothing behind.
// Rule: I1, fs-test, stage
func TestFirstArrival(t *testing.T) {
	const contenders = 40
	arrive := func(t *testing.T, where ...host) {
		for range jobsAtLength(1, 25) {
			p := newPlace(t)
			var all sync.WaitGroup
			together := make(chan struct{})
			for n := range contenders {
				h := where[n%len(where)]
				src := p.source(t, h)
				all.Go(func() {
					<-together
					lock, err := multilock.TryAcquire(within(t), src, fmt.Sprintf("job-%d", n), longOptions())
					if assert.NoError(t, err, "contender %d, v%s", n, h.version) {
						assert.NoError(t, lock.Release(within(t)))
					}
				})
			}
			close(together)
			all.Wait()
			left, err := shareddir.Names(p.dir(t, where[0], shareddir.PrivateDir, shareddir.StagingDir).List, func(name string) bool {
				return strings.HasSuffix(name, shareddir.TestSuffix)
			})
			require.NoError(t, err)
			require.Empty(t, left)
			if t.Failed() {
				return
			}
		}
	}
	eachVersion(t, func(t *testing.T, h host, _ []host) { arrive(t, h) })
	t.Run("all versions", func(t *testing.T) {
		needLab(t)
		arrive(t, hosts()...)
	})
}
