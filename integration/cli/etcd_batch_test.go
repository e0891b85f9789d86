package cli_test

import (
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/etcdlab"
)

var longBatch = flag.Bool("long", false, "a list of 2,000 jobs on servers that are killed, instead of 60")

// TestEtcdBatch has three runners process a list while the three members are killed in turn, including
// the leader: each job runs once.
func TestEtcdBatch(t *testing.T) {
	t.Parallel()
	c := etcdlab.Start(t, 3)
	newStation(t, "MULTILOCK_SOURCE="+c.URL("locks")).batchUnderFire("-j2", func(n int, pace time.Duration) {
		victim := c.Leader()
		if n%2 == 1 {
			victim = c.Members[n%3]
		}
		c.Kill(victim)
		time.Sleep(pace / 3)
		c.Restart(victim)
	})
	require.Zero(t, c.Count(t, "locks/lock/"), "no lock is left")
}
