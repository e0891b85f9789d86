package nfs_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/process"
)

// Another host reads the mark that is there now, however often it was replaced since it read one.
// Rule: job
func TestMarkIsReadElsewhere(t *testing.T) {
	eachVersion(t, func(t *testing.T, h host, others []host) {
		p := newPlace(t)
		here, there := p.source(t, h), p.source(t, others[0])
		lock := acquire(t, here, "nightly", multilock.ForJob{Options: longOptions()})
		var groups []process.Group
		for n := range 5 {
			seen, err := there.JobGroups(within(t), "nightly")
			require.NoError(t, err)
			require.Equal(t, groups, seen, "after %d marks", n)
			groups = append(groups, process.Group{PGID: 100 + n, Work: process.Work{Job: n + 1, Attempt: 2, Slot: 1, After: 0.5}})
			require.NoError(t, lock.MarkJob(within(t), groups...))
		}
	})
}
