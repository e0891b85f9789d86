package fslock_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/testkit/actor"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/source"
)

var (
	longStress = flag.Bool("long", false, "stress: 16 processes with 2,000 cycles each, instead of 8 for 15 seconds")
	seedStress = flag.Uint64("seed", 0, "stress: the seed of what happens to whom, 0 for a new one")
)

// Processes on several "hosts" take one lock in turns, while they are killed and
// stopped at random moments. A witness file, the history of what each believed,
// and the fence numbers all say whether two of them ever held it at once.
func TestStress(t *testing.T) {
	seed := *seedStress
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	c := &contest{t: t, base: fresh(t), local: fresh(t), rng: rand.New(rand.NewPCG(seed, 0))}
	size, end := 8, time.Now().Add(15*time.Second)
	if *longStress {
		size, c.cycles, end = 16, 2000, time.Now().Add(24*time.Hour)
	}
	t.Cleanup(func() {
		for _, m := range c.places {
			_ = m.Process.Kill()
		}
	})
	c.fill(size)
	allDone := func() bool { return !slices.ContainsFunc(c.places, func(m *place) bool { return !m.done }) }
	for time.Now().Before(end) && !allDone() {
		c.round()
		time.Sleep(time.Duration(c.rng.Int64N(int64(200 * time.Millisecond))))
	}
	c.finish()
	c.verdict()
}

// verdict checks what is left, and the history.
func (c *contest) verdict() {
	src := open(c.t, fslock.Options{Base: c.base})
	last := acquire(c.t, src, stressName, multilock.Options{TTL: long})
	number, err := last.Fence(c.t.Context())
	require.NoError(c.t, err)
	require.NoError(c.t, last.Release(context.Background()))

	events := append(c.events("log.*"), c.killed...)
	require.NoError(c.t, locktest.Check(events))
	for _, e := range events {
		require.Less(c.t, e.Fence, number)
	}
	requireTidy(c.t, c.base)
	c.report(events, src)
}

// report prints the figures. The last two are what was checked before: anything
// else ends the test.
func (c *contest) report(events []locktest.Event, src *fslock.Source) {
	count := map[locktest.Kind]int{}
	for _, e := range events {
		count[e.Kind]++
	}
	history, err := src.History(c.t.Context(), time.Time{})
	require.NoError(c.t, err)
	takeovers := 0
	for _, e := range history {
		if e.What == source.EventBroke {
			takeovers++
		}
	}
	c.t.Logf("%d acquisitions, %d kills, %d stops, %d lost, %d takeovers, 0 double holders, 0 stuck locks",
		count[locktest.Acquired], count[locktest.Killed], c.stops, count[locktest.Lost], takeovers)
}

// contest is the processes of one stress test, and what was done to them.
type contest struct {
	t           *testing.T
	base, local string
	rng         *rand.Rand
	cycles      int // per slot, 0 for as many as there is time for
	places      []*place
	killed      []locktest.Event
	stops       int
}

// place is a worker's in the contest; several processes fill it one after another.
type place struct {
	shift
	*actor.Actor
	ended  chan error
	resume time.Time // when it is to go on, zero if it runs
	done   bool
}

// patience is for how long a process may be kept stopped between its question
// whether it holds the lock and its touch of the witness: others can take the
// lock no sooner than this after the end of its tenure.
const patience = stressTTL / 5

// String names the process that fills the place at present.
func (m *place) String() string { return m.shift.String() }

func (c *contest) fill(slots int) {
	for slot := range slots {
		m := &place{shift: shift{Slot: slot, Base: c.base, Local: c.local}}
		if slot%2 == 1 { // every other one works on a host of its own
			m.Host = fmt.Sprintf("host%d", slot)
		}
		c.places = append(c.places, m)
		c.begin(m)
	}
}

// begin starts the next process in a place.
func (c *contest) begin(m *place) {
	m.Life++
	m.Seed, m.Cycles = c.rng.Uint64(), 1<<30
	if c.cycles > 0 {
		m.Cycles = c.cycles - locktest.Finished(c.events(fmt.Sprintf("log.%d.*", m.Slot)))
	}
	worker := actor.Prepare(c.t, "worker", m.shift)
	worker.Start(c.t)
	m.Actor, m.ended = worker, make(chan error, 1)
	go func(ended chan<- error) { ended <- worker.Wait() }(m.ended)
}

// events are those of the processes whose logs have such names.
func (c *contest) events(pattern string) []locktest.Event {
	events, err := locktest.ReadEventFiles(filepath.Join(c.local, pattern))
	require.NoError(c.t, err)
	return events
}

// round lets those go on whose time has come, and disturbs one that runs.
func (c *contest) round() {
	for _, m := range c.places {
		if !m.resume.IsZero() && time.Now().After(m.resume) {
			c.cont(m)
		}
		c.check(m)
	}
	m := c.pick()
	if m.done || !m.resume.IsZero() {
		return
	}
	if c.rng.IntN(2) == 0 {
		c.kill(m)
	} else {
		c.stop(m)
	}
}

// check ends the test when a worker ended by itself before its cycles were done.
func (c *contest) check(m *place) {
	select {
	case err := <-m.ended:
		require.NoError(c.t, err, "worker %s", m)
		m.done = true
	default:
	}
}

// pick chooses anybody, but every third time whoever is inside.
func (c *contest) pick() *place {
	if c.rng.IntN(3) == 0 {
		if found, err := (witness{dir: c.local}).read(); err == nil {
			for _, m := range c.places {
				if m.String() == found.Worker {
					return m
				}
			}
		}
	}
	return c.places[c.rng.IntN(len(c.places))]
}

func (c *contest) witness(m *place) witness {
	return witness{dir: c.local, worker: m.String(), slot: m.Slot}
}

// freeze stops a worker, and reports false if it was in no state to be stopped
// for long and goes on already, or is gone.
func (c *contest) freeze(m *place) bool {
	start := time.Now()
	m.Signal(c.t, syscall.SIGSTOP)
	for !standsStill(m.Process.Pid) {
		time.Sleep(time.Millisecond)
	}
	if _, err := os.Stat(c.witness(m).acting()); err != nil {
		return true
	}
	if time.Since(start) > patience {
		c.killStopped(m) // this machine is too slow to let it go on as if nothing had happened
		return false
	}
	c.cont(m)
	return false
}

// standsStill says whether all threads of a process are stopped, or it ended.
func standsStill(pid int) bool {
	stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the thread ended
		}
		_, fields, _ := strings.Cut(string(text), ") ")
		if !strings.ContainsAny(fields[:1], "TtZX") {
			return false
		}
	}
	return true
}

// stop keeps a worker stopped for up to two TTLs.
func (c *contest) stop(m *place) {
	if c.freeze(m) {
		c.stops++
		m.resume = time.Now().Add(time.Duration(c.rng.Int64N(int64(2 * stressTTL))))
	}
}

func (c *contest) cont(m *place) {
	m.resume = time.Time{}
	_ = m.Process.Signal(syscall.SIGCONT) // it may have ended
}

// kill ends a worker in the middle of what it does, and fills its place.
func (c *contest) kill(m *place) {
	if c.freeze(m) {
		c.killStopped(m)
	}
}

// killStopped ends a stopped worker. Its witness goes first, as its successor may come
// as soon as it is dead.
func (c *contest) killStopped(m *place) {
	require.NoError(c.t, c.witness(m).clear())
	event := locktest.Event{Proc: m.String(), Kind: locktest.Killed, Name: stressName, Time: locktest.Now()}
	_ = m.Process.Kill()
	if err := <-m.ended; err == nil {
		m.done = true // it had done all its cycles just before
		return
	}
	c.killed = append(c.killed, event)
	_ = os.Remove(c.witness(m).acting())
	c.begin(m)
}

// finish ends the work of all and waits for them.
func (c *contest) finish() {
	for _, m := range c.places {
		c.cont(m)
		_ = m.Input.Close()
	}
	for _, m := range c.places {
		if m.done {
			continue
		}
		select {
		case err := <-m.ended:
			require.NoError(c.t, err, "worker %s", m)
		case <-time.After(watchdog):
			require.FailNow(c.t, "a worker hangs", m.String())
		}
	}
}
