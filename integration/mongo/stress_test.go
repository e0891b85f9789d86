package mongo_test

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/multilock/go/integration/mongolab"
	"github.com/multilock/go/internal/testkit/worker"
	"github.com/multilock/go/multilock/mongolock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

var longStress = flag.Bool("long", false, "the long form of the stress test: 16 processes that take the lock 8,000 times")

const stressTTL = 2 * time.Second

// TestStress has processes fight for one lock. They are killed and stopped at any moment,
// connections are cut, and commands and replies get lost. Nobody holds what another
// holds, numbers grow, and the lock is never stuck.
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

// badNetwork loses a share of all commands, and as many replies, and delays some
// until long after their clients have given them up.
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
