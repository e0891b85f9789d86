package mongo_test

import (
	"flag"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/multilock/go/integration/mongolab"
	"github.com/multilock/go/internal/testkit/worker"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/mongolock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

func TestConformance(t *testing.T) {
	locktest.Run(t, fixture(mongolab.Options{}, ""))
}

func TestConformanceInAGroup(t *testing.T) {
	locktest.Run(t, fixture(mongolab.Options{}, "nightly jobs"))
}

// On the primary of a replica set, drivers retry writes and sources use linearizable reads.
func TestConformanceInAReplicaSet(t *testing.T) {
	locktest.Run(t, fixture(mongolab.Options{ReplicaSet: true}, ""))
}

// A distant server takes a second per command. With -short it takes less.
func TestConformanceFarAway(t *testing.T) {
	opt := mongolab.Options{Latency: time.Second}
	if testing.Short() {
		opt.Latency = 300 * time.Millisecond
	}
	f := fixture(opt, "")
	f.TTL, f.Distant = 20*opt.Latency, true
	locktest.Run(t, f)
}

func fixture(opt mongolab.Options, group string) locktest.Fixture {
	return locktest.Fixture{
		Fences: true, Marks: true, Deaths: true,
		Odd:     []string{"tab\tand\nnewline", "$set", "a.b", "null", strings.Repeat("\u20ac", 166)},
		Refused: []string{"a/b", "/", "nul\x00byte", "\xff\xfe not utf-8", strings.Repeat("x", 501)},
		Place: func(t testing.TB) func() multilock.Source {
			l := newLab(t, opt)
			c := l.collection()
			return func() multilock.Source { return l.open(c, group) }
		},
	}
}

var longStress = flag.Bool("long", false, "the long form of the stress test: 16 processes that take the lock 8,000 times")

const stressTTL = 2 * time.Second

// TestStress has processes contend for one lock. They are killed and paused at random, connections are
// cut, and commands and replies are lost. There is never more than one holder, fencing tokens grow, and
// the lock never gets stuck.
func TestStress(t *testing.T) {
	size, turns := 6, 100
	if *longStress {
		size, turns = 16, 8000
	}
	l := newLab(t, mongolab.Options{})
	place := l.collection()
	l.server.Inject(badNetwork(0.01))
	crew := worker.Crew{TB: t, Place: l.url(place), TTL: stressTTL, Disturb: l.server.CutConnections}
	crew.Work(size, turns)
	l.server.Inject(nil)
	crew.Judge(l.open(place, ""))
}

func playWorker() error {
	return worker.Play(func(url string, self process.Identity) (source.Source, error) {
		return mongolock.Open(mongolock.Options{
			Place: mongolock.Place{URL: url, Timeout: stressTTL, BehindSerialisingProxy: true}, Self: self,
		})
	})
}

// badNetwork loses some of the commands and as many replies, and delays some commands until long after
// their clients gave up.
func badNetwork(share float64) mongolab.Injector {
	return func(c mongolab.Command) mongolab.Fault {
		if c.Upkeep {
			return mongolab.Fault{}
		}
		switch draw := rand.Float64() / share; {
		case draw < 1:
			return mongolab.Fault{Outcome: mongolab.Dropped}
		case draw < 2:
			return mongolab.Fault{Outcome: mongolab.Lost}
		case draw < 2.5:
			return mongolab.Fault{Outcome: mongolab.Zombie, Before: mongolab.For(rand.N(stressTTL))}
		case draw < 2.6:
			return mongolab.Fault{Outcome: mongolab.Mute}
		case draw < 3:
			return mongolab.Fault{Outcome: mongolab.Misreported, Code: mongolab.InterruptedDueToReplStateChange}
		}
		return mongolab.Fault{}
	}
}
