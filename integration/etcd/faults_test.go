package etcd_test

import (
	"flag"
	"testing"
	"time"

	"github.com/multilock/go/integration/engine"
	"github.com/multilock/go/integration/etcdlab"
	"github.com/multilock/go/multilock/source"
)

var longStress = flag.Bool("long", false, "the long form of the stress tests: ten minutes for each fault")

// fault is injected into a cluster repeatedly.
type fault struct {
	strike func(*etcdlab.Cluster)
	quota  int64                         // of the first member's store, 0 for the default
	place  func(*etcdlab.Cluster) string // of the workers, nil for all members
}

// faults returns the faults of a cluster. Each lasts longer than an election, or longer than a lock may
// go without a heartbeat.
func faults() map[string]fault {
	leader := func(do func(*etcdlab.Cluster, *etcdlab.Member)) fault {
		return fault{strike: func(c *etcdlab.Cluster) { do(c, c.Leader()) }}
	}
	return map[string]fault{
		"leader killed": leader(func(c *etcdlab.Cluster, m *etcdlab.Member) {
			c.Kill(m)
			time.Sleep(engine.StressTTL / 2)
			c.Restart(m)
		}),
		"leader paused":  leader(func(c *etcdlab.Cluster, m *etcdlab.Member) { c.Pause(m, engine.StressTTL) }),
		"leader cut off": leader(cutOff),
		"follower cut off": leader(func(c *etcdlab.Cluster, leader *etcdlab.Member) {
			m := c.Members[0]
			if m == leader {
				m = c.Members[1]
			}
			cutOff(c, m)
		}),
		// Half of the workers know only the member that is cut off, the others know all members but
		// that one.
		"workers on both sides": {
			strike: func(c *etcdlab.Cluster) { cutOff(c, c.Members[0]) },
			place: func(c *etcdlab.Cluster) string {
				m := c.Members
				return "etcd://" + m[0].Client + "/stress etcd://" + m[1].Client + "," + m[2].Client + "/stress"
			},
		},
		"disk full": {quota: 32 << 20, strike: func(c *etcdlab.Cluster) {
			c.Fill("junk/")
			time.Sleep(engine.StressTTL)
			c.Empty("junk/")
		}},
		"clock stepped": leader(func(c *etcdlab.Cluster, m *etcdlab.Member) {
			const months = 100 * 24 * time.Hour
			for _, beside := range []time.Duration{months, -months, time.Hour, 0} {
				c.Step(m, beside)
				time.Sleep(engine.StressTTL / 4)
			}
		}),
		"all start anew": {strike: func(c *etcdlab.Cluster) {
			for _, m := range c.Members {
				c.Kill(m)
			}
			c.Restart(c.Members...)
		}},
	}
}

func cutOff(c *etcdlab.Cluster, m *etcdlab.Member) {
	c.Isolate(m)
	time.Sleep(engine.StressTTL)
	c.Mend(m)
}

// TestStress has processes contend for one lock while the cluster suffers faults.
func TestStress(t *testing.T) {
	for name, f := range faults() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := etcdlab.StartSmall(t, 3, f.quota)
			place := c.URL("stress")
			if f.place != nil {
				place = f.place(c)
			}
			engine.Stress(t, place, *longStress, func() { f.strike(c) }, func() source.Source {
				c.Ready()
				return open(t, c.Hosts(), "stress", "")
			})
		})
	}
}
