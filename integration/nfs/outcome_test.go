package nfs_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
)

// A holder stands still after it has learned that its job has no result. Meanwhile
// another host breaks the lock, runs the job and commits. When the holder goes on it
// does not believe what it learned, although its client has all of the lock in its
// cache, and has given no sign of life since.
func TestOutcomeWhileAnotherHostCommits(t *testing.T) {
	eachVersion(t, func(t *testing.T, h host, others []host) {
		for _, left := range []string{"the successor is done", "the successor holds the lock"} {
			t.Run(left, func(t *testing.T) {
				p := newPlace(t)
				src, faulty := p.gatedSource(t, h)
				lock := try(t, src, "job", longOptions())
				g := newGate(t, "statname", "/job.locked")
				faulty.Inject(g.inject)
				learned := make(chan error, 1)
				go func() {
					_, err := lock.Outcome(within(t))
					learned <- err
				}()
				g.await(t)
				other := p.source(t, others[0])
				_, err := multilock.Break(within(t), other, "job", multilock.Want{Alive: true})
				require.NoError(t, err)
				if left == "the successor is done" {
					runJob(t, other, "job")
				} else {
					try(t, other, "job", longOptions())
				}
				g.letPass()
				err = <-learned
				require.ErrorIs(t, err, multilock.ErrLost)
				require.NotErrorIs(t, err, multilock.ErrNoResult)
			})
		}
	})
}
