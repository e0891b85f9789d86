package etcd_test

import (
	"flag"
	"sync/atomic"
	"testing"
	"time"

	"github.com/multilock/go/integration/etcdlab"
	"github.com/multilock/go/internal/testkit/worker"
)

var longStress = flag.Bool("long", false, "the long form of the stress tests: thousands of turns for each fault")

const stressTTL = 3 * time.Second

// TestStress has processes fight for one lock. They are killed and stopped at any moment, and a
// member is killed, stands still, or is cut off, the leader with few or one that follows, or all
// start anew. Nobody holds what another holds, numbers grow, and the lock is never stuck.
func TestStress(t *testing.T) {
	turns := 25
	if testing.Short() {
		turns = 6
	}
	if *longStress {
		turns = 3000
	}
	for name, fault := range map[string]func(*etcdlab.Cluster, *etcdlab.Member){
		"leader killed": func(c *etcdlab.Cluster, m *etcdlab.Member) {
			c.Kill(m)
			time.Sleep(stressTTL / 2)
			c.Restart(m)
		},
		"leader paused": func(c *etcdlab.Cluster, m *etcdlab.Member) { c.Pause(m, stressTTL) },
		"leader cut off": func(c *etcdlab.Cluster, m *etcdlab.Member) {
			c.Isolate(m)
			time.Sleep(stressTTL)
			c.Mend(m)
		},
		"follower cut off": func(c *etcdlab.Cluster, leader *etcdlab.Member) {
			m := c.Members[0]
			if m == leader {
				m = c.Members[1]
			}
			c.Isolate(m)
			time.Sleep(stressTTL)
			c.Mend(m)
		},
		"all start anew": func(c *etcdlab.Cluster, _ *etcdlab.Member) {
			for _, m := range c.Members {
				c.Kill(m)
			}
			c.Restart(c.Members...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := etcdlab.Start(t, 3)
			var faults atomic.Int64
			quiet := time.Now()
			crew := worker.Crew{TB: t, Place: c.URL("stress"), TTL: stressTTL, Disturb: func() {
				if time.Since(quiet) < 2*stressTTL {
					return // it is to work in between
				}
				fault(c, c.Leader())
				faults.Add(1)
				quiet = time.Now()
			}}
			crew.Work(4, turns)
			c.Ready()
			crew.Judge(open(t, c.Hosts(), "stress", ""))
			t.Logf("%d faults", faults.Load())
		})
	}
}
