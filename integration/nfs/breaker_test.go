package nfs_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

// succession is a lock that changes hands while a slow breaker on another host
// has the old one in mind.
func succession(t *testing.T, p place, others []host, meanwhile func()) (successor source.Lease) {
	t.Helper()
	first, second := p.source(t, others[0]), p.source(t, others[1])
	plant(t, first, "job", long)
	meanwhile()
	breakAlive(t, second)
	return plant(t, second, "job", long)
}

// A breaker that removes the lock file by its path removes whatever lock is
// there by then: the kernel has the old directory's handle, is told ESTALE, and
// walks the path again.
func TestSlowBreakerByPath(t *testing.T) {
	eachVersion(t, func(t *testing.T, h host, others []host) {
		p := newPlace(t)
		path := p.on(h, fslock.DefaultGroup, "job", "job.locked")
		successor := succession(t, p, others, func() {
			require.NoError(t, h.inside(func() error {
				_, err := os.ReadFile(path)
				return err
			}))
		})
		require.NoError(t, h.inside(func() error { return unix.Unlink(path) }))
		require.Empty(t, p.record(t, "job").Token, "the successor's lock is still there: nothing is shown")
		require.ErrorIs(t, successor.Renew(within(t)), multilock.ErrLost)
	})
}
