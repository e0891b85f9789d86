package mongo_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/multilock/go/integration/mongolab"
	"github.com/multilock/go/internal/testkit/actor"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/locktest"
)

var longStress = flag.Bool("long", false, "the long form of the stress test: 16 processes, 500 cycles each")

// TestStress has processes fight for one lock. They are killed at any moment,
// connections are cut, and commands and replies get lost. Nobody holds what another
// holds, numbers grow, and the lock is never stuck.
func TestStress(t *testing.T) {
	size, cycles := 6, 25
	if *longStress {
		size, cycles = 16, 500
	}
	l := newLab(t, mongolab.Options{})
	crew := &crew{lab: l, c: l.collection(), dir: t.TempDir()}
	l.server.Inject(badNetwork(0.01))
	for slot := range size {
		crew.hire(slot, cycles)
	}
	crew.disturb()
	l.server.Inject(nil)
	crew.verdict(size * cycles)
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

// crew is the processes of one stress test.
type crew struct {
	*lab
	c       *mongo.Collection
	dir     string
	members []*member
	killed  []locktest.Event
}

// member is a place in the crew; several processes fill it one after another.
type member struct {
	shift
	*actor.Actor
	cycles int // that the place has to do in all
	ended  chan error
	done   bool
}

func (c *crew) hire(slot, cycles int) {
	m := &member{shift: shift{Slot: slot, URL: c.url(c.c), Dir: c.dir}, cycles: cycles}
	if slot%2 == 1 { // every other one is on a host of its own: its death is only told by its silence
		m.Host = "host" + m.String()
	}
	c.members = append(c.members, m)
	c.begin(m)
}

// begin starts the next process in a place.
func (c *crew) begin(m *member) {
	m.Life++
	m.Cycles = m.cycles - locktest.Finished(c.events(fmt.Sprintf("log.%d.*", m.Slot)))
	if m.Cycles <= 0 {
		m.done = true
		return
	}
	m.Actor = actor.Prepare(c, "worker", m.shift)
	m.Start(c)
	m.ended = make(chan error, 1)
	go func(a *actor.Actor, ended chan<- error) { ended <- a.Wait() }(m.Actor, m.ended)
}

// events are those of the processes whose logs have such names.
func (c *crew) events(pattern string) []locktest.Event {
	events, err := locktest.ReadEventFiles(filepath.Join(c.dir, pattern))
	require.NoError(c, err)
	return events
}

// disturb kills processes and cuts connections until all cycles are done.
func (c *crew) disturb() {
	for {
		var working []*member
		for _, m := range c.members {
			if c.check(m); !m.done {
				working = append(working, m)
			}
		}
		if len(working) == 0 {
			return
		}
		switch rand.IntN(4) {
		case 0:
			c.server.CutConnections()
		default:
			c.kill(working[rand.IntN(len(working))])
		}
		time.Sleep(rand.N(time.Second)) // what happens meanwhile is the test
	}
}

// check ends the test when a process failed, and notes one that is done.
func (c *crew) check(m *member) {
	if m.done {
		return
	}
	select {
	case err := <-m.ended:
		require.NoError(c, err, "worker %s", m.String())
		m.done = true
	default:
	}
}

// kill ends a process in the middle of what it does, and fills its place.
func (c *crew) kill(m *member) {
	event := locktest.Event{Proc: m.String(), Kind: locktest.Killed, Name: stressName, Time: locktest.Now()}
	m.End()
	if err := <-m.ended; err == nil {
		m.done = true // it had done all its cycles just before
		return
	}
	c.killed = append(c.killed, event)
	c.begin(m)
}

// verdict checks the history, and what is left.
func (c *crew) verdict(cycles int) {
	events := append(c.events("log.*"), c.killed...)
	require.NoError(c, locktest.Check(events))
	count := map[locktest.Kind]int{}
	highest := uint64(0)
	for _, e := range events {
		count[e.Kind]++
		highest = max(highest, e.Fence)
	}
	require.GreaterOrEqual(c, count[locktest.Acquired], cycles)
	last, err := multilock.Acquire(within(c), c.open(c.c, ""), stressName, multilock.Options{})
	require.NoError(c, err)
	number, err := last.Fence(within(c))
	require.NoError(c, err)
	require.Greater(c, number, highest)
	require.NoError(c, last.Release(within(c)))
	history, err := c.open(c.c, "").History(within(c), time.Time{})
	require.NoError(c, err)
	c.Logf("%d acquisitions, %d kills, %d lost, %d unsure, %d takeovers in the history, 0 double holders, 0 stuck locks",
		count[locktest.Acquired], count[locktest.Killed], count[locktest.Lost], count[locktest.Unsure], len(history))
}
