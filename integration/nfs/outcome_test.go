package nfs_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// A holder stands still after it has learned that its job has no result. Meanwhile
// another host breaks the lock, runs the job and commits. When the holder goes on it
// does not believe what it learned, although its client has all of the lock in its
// cache, and has given no sign of life since.
func TestOutcomeWhileAnotherHostCommits(t *testing.T) {
	for left, succeed := range map[string]func(*testing.T, *fslock.Source){
		"the successor is done":        func(t *testing.T, src *fslock.Source) { runJob(t, src, "job") },
		"the successor holds the lock": func(t *testing.T, src *fslock.Source) { try(t, src, "job", longOptions()) },
	} {
		t.Run(left, func(t *testing.T) {
			eachVersion(t, func(t *testing.T, h host, others []host) {
				p := newPlace(t)
				faulty, other := faultfs.New(h, nil), p.source(t, others[0])
				lock := try(t, p.sourceThrough(t, h, faulty), "job", longOptions())
				var once sync.Once
				faulty.Inject(func(op faultfs.Op) error {
					if op.Phase == faultfs.Before && op.Kind == "statname" && strings.HasSuffix(op.Real, "/job.locked") {
						once.Do(func() {
							breakAlive(t, other)
							succeed(t, other)
						})
					}
					return nil
				})
				_, err := lock.Outcome(within(t))
				require.ErrorIs(t, err, multilock.ErrLost)
				require.NotErrorIs(t, err, multilock.ErrNoResult)
			})
		})
	}
}
