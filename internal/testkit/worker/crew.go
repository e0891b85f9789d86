//go:build unix

package worker

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/testkit/actor"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// contested is the lock for which a crew competes.
const contested = "contested"

// patience is the timeout of calls that should not hang, far above any normal duration.
const patience = 2 * time.Minute

// Crew is a set of worker processes that compete for one lock, while they are killed and stopped.
type Crew struct {
	testing.TB
	Place   string // the location of the lock, in the form that the test's Play parses
	TTL     time.Duration
	Seed    uint64        // of the random events, 0 for a new one
	Lasts   time.Duration // how long the crew works at least
	Disturb func()        // an additional fault, at the start and now and then; may be nil

	rng          *rand.Rand
	history      *History
	members      []*member
	kills, stops int
	disturbed    bool
}

// member is a slot of the crew, filled by several processes one after another.
type member struct {
	*actor.Actor
	shift
	slot, life int
	resume     time.Time // when to continue the process, zero if it runs
}

// shift is the configuration of one process.
type shift struct {
	Name  string // in the history, unique
	Host  string // the host that it claims to be on, "" for the real one
	Place string
	TTL   time.Duration
	Seed  uint64
}

// Play is the role "worker" for a process of a crew: it works until its input ends.
func Play(open func(place string, self process.Identity) (source.Source, error)) error {
	var s shift
	if err := actor.Part(&s); err != nil {
		return err
	}
	self, err := locktest.SelfOn(s.Host)
	if err != nil {
		return err
	}
	src, err := open(s.Place, self)
	if err != nil {
		return err
	}
	w := Worker{
		Source: src, Log: locktest.NewRecorder(os.Stdout, s.Name), Rand: rand.New(rand.NewPCG(s.Seed, 0)),
		Names: []string{contested}, TTL: s.TTL, Poll: s.TTL / 20,
	}
	return w.Work(actor.InputEnds())
}

// Work runs a crew of this size until it has acquired the lock this often.
func (c *Crew) Work(size, turns int) {
	c.Helper()
	if c.Seed == 0 {
		c.Seed = rand.Uint64()
	}
	c.Logf("seed %d", c.Seed)
	c.rng, c.history = rand.New(rand.NewPCG(c.Seed, 0)), NewHistory(c, io.Discard)
	for slot := range size {
		m := &member{slot: slot}
		if slot%2 == 1 { // every other one is on a host of its own: only missing heartbeats show its death
			m.Host = fmt.Sprint("host", slot)
		}
		c.members = append(c.members, m)
		c.begin(m)
	}
	c.trouble(turns)
	for _, m := range c.members {
		require.NoError(c, m.Input.Close())
		m.GoOn(c)
	}
	c.history.Close(c)
}

// begin starts the next process of a member.
func (c *Crew) begin(m *member) {
	m.life++
	m.shift = shift{Name: fmt.Sprintf("%d.%d", m.slot, m.life), Host: m.Host, Place: c.Place, TTL: c.TTL, Seed: c.rng.Uint64()}
	m.Actor = actor.Prepare(c, "worker", m.shift)
	m.Stdout = c.history.In
	m.Start(c)
}

// trouble lasts until the lock was acquired this often. The lock is stuck if it is not acquired for
// several times as long as a dead holder's lock stays held.
func (c *Crew) trouble(turns int) {
	began := time.Now()
	for had, since := 0, began; had < turns || time.Since(began) < c.Lasts; Pause(c.Context(), UpTo(c.rng, c.TTL/2)) {
		c.round()
		if now := locktest.Finished(c.history.All()); now > had {
			had, since = now, time.Now()
		}
		require.Less(c, time.Since(since), patience, "the lock is stuck")
	}
}

// round continues the processes that are due, and disturbs one process.
func (c *Crew) round() {
	for _, m := range c.members {
		if !m.resume.IsZero() && time.Now().After(m.resume) {
			m.resume = time.Time{}
			m.Signal(c, syscall.SIGCONT)
		}
	}
	m := c.pick()
	switch {
	case c.Disturb != nil && (!c.disturbed || c.rng.IntN(4) == 0):
		c.disturbed = true
		c.Disturb()
	case c.rng.IntN(2) == 0:
		c.kill(m)
	case m.resume.IsZero():
		c.stops++
		m.Signal(c, syscall.SIGSTOP)
		m.resume = time.Now().Add(UpTo(c.rng, 2*c.TTL))
	}
}

// pick chooses a random member, and every third time the last one that acquired the lock.
func (c *Crew) pick() *member {
	if c.rng.IntN(3) == 0 {
		for _, e := range slices.Backward(c.history.All()) {
			if e.Kind != locktest.Acquired {
				continue
			}
			if i := slices.IndexFunc(c.members, func(m *member) bool { return m.Name == e.Proc }); i >= 0 {
				return c.members[i]
			}
			break
		}
	}
	return c.members[c.rng.IntN(len(c.members))]
}

// kill kills a running process, and starts another in its place. A process that had ended by itself fails
// the test.
func (c *Crew) kill(m *member) {
	c.kills++
	require.NoError(c, locktest.NewRecorder(c.history.In, m.Name).Record(locktest.Event{Kind: locktest.Killed}))
	m.End()
	require.Equal(c, syscall.SIGKILL, m.ProcessState.Sys().(syscall.WaitStatus).Signal(), "%s: %s", m.Name, m.ProcessState)
	m.resume = time.Time{}
	c.begin(m)
}

// Judge requires that no two processes held the lock at the same time, and that another acquisition
// through src gets the lock and a higher number than all. It returns the history.
func (c *Crew) Judge(src source.Source) []locktest.Event {
	c.Helper()
	events := c.history.All()
	require.NoError(c, locktest.Check(events))
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	lock, err := multilock.Acquire(ctx, src, contested, multilock.Options{})
	require.NoError(c, err)
	number, err := lock.Fence(ctx)
	require.NoError(c, err)
	require.NoError(c, lock.Release(ctx))
	count := map[locktest.Kind]int{}
	for _, e := range events {
		require.Less(c, e.Fence, number)
		count[e.Kind]++
	}
	c.Logf("%d acquisitions, %d kills, %d stops, %d lost, %d unsure, 0 double holders, 0 stuck locks",
		count[locktest.Acquired], c.kills, c.stops, count[locktest.Lost], count[locktest.Unsure])
	return events
}
