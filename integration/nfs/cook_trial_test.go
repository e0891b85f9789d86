package nfs_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/locktest"
)

// several are the swaps that others make while one stands still, or is away.
const several = 3

// cookTrial is one register that processes on all hosts swap as fast as they can,
// while some are killed and replaced, and others stand still and go on.
type cookTrial struct {
	place
	t    *testing.T
	rng  *rand.Rand
	logs string // the directory of what they tell, which is not on the share
	crew []*swapper
	all  []*swapper // the dead, too
	cookBlows
}

// cookBlows are what has happened to swappers, hosts and the server. All stops were
// in the middle of a swap.
type cookBlows struct{ kills, stops, crashes, cuts, restarts int }

// newCookTrial starts so many swappers on each host.
func newCookTrial(t *testing.T, each int) *cookTrial {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	c := &cookTrial{t: t, place: newPlace(t), rng: rand.New(rand.NewPCG(seed, 0)), logs: outside(t)}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the lock: %q\n%s", c.entries(t, fslock.DefaultGroup, "nightly"), c)
		}
	})
	for range each {
		for _, h := range hosts() {
			c.start(h, "")
		}
	}
	c.await(1)
	return c
}

// String is what all have told, the last of it.
func (c *cookTrial) String() string {
	var text strings.Builder
	for _, s := range c.all {
		lines := bytes.Split(bytes.TrimSpace(s.text(c.t)), []byte("\n"))
		fmt.Fprintf(&text, "%s: %d lines, %s\n", filepath.Base(s.log), len(lines), lines[len(lines)-1])
	}
	return text.String()
}

// start starts a swapper under a name that none had before.
func (c *cookTrial) start(h host, halt string) *swapper {
	c.t.Helper()
	name := fmt.Sprintf("%s.%d", h.name, len(c.all))
	log := filepath.Join(c.logs, name)
	require.NoError(c.t, os.WriteFile(log, nil, 0o666))
	s := &swapper{prepare(c.t, h, "swapper", swapperPlan{Base: c.on(h), Name: name, Log: log, Halt: halt, TTL: swapTTL}), log}
	s.Start(c.t)
	c.crew, c.all = append(c.crew, s), append(c.all, s)
	return s
}

// await waits for so many more swaps that have been answered.
func (c *cookTrial) await(swaps int) {
	c.t.Helper()
	awaitCount(c.t, "swaps answered", c.answered()+swaps, c.answered)
}

func (c *cookTrial) answered() (n int) {
	for _, s := range c.all {
		n += s.told(c.t, "end")
	}
	return n
}

// round kills one, and has another one take its place that stands still in the
// middle of its first swap. So do some of the others, wherever they are. When the
// rest have made several swaps all go on, but for every fifth newcomer: it dies.
func (c *cookTrial) round(n, others int) {
	c.t.Helper()
	c.pass()
	victim := c.any(c.crew)
	c.kill(victim)
	newcomer := c.start(victim.host, halts()[n%len(halts())])
	c.awaitHalt(newcomer)
	stopped := []*swapper{newcomer}
	for range others {
		s := c.any(c.crew, stopped...)
		c.stop(s)
		stopped = append(stopped, s)
	}
	c.await(several)
	if n%5 == 1 {
		c.kill(newcomer)
		c.start(newcomer.host, "")
		stopped = stopped[1:]
	}
	for _, s := range stopped {
		s.signal(c.t, unix.SIGCONT)
	}
}

// any is one of these that has begun to swap, and none of those.
func (c *cookTrial) any(these []*swapper, but ...*swapper) (s *swapper) {
	c.t.Helper()
	eventually(c.t, "somebody begins to swap", func() bool {
		s = these[c.rng.IntN(len(these))]
		return !slices.Contains(but, s) && s.told(c.t, "begin") > 0
	})
	return s
}

// kill ends a swapper as kill -9 does.
func (c *cookTrial) kill(s *swapper) {
	c.t.Helper()
	s.signal(c.t, unix.SIGKILL)
	c.bury(s)
	c.kills++
}

// bury waits until one that has been killed has ended.
func (c *cookTrial) bury(s *swapper) {
	c.t.Helper()
	require.ErrorContains(c.t, awaitExit(c.t, s.Wait), strconv.Itoa(128+int(unix.SIGKILL)), "it ended by itself")
	c.crew = slices.DeleteFunc(c.crew, func(o *swapper) bool { return o == s })
}

// stop stops a swapper in the middle of a swap, anywhere. A call that waits for the
// server returns first.
func (c *cookTrial) stop(s *swapper) {
	c.t.Helper()
	eventually(c.t, "a process is stopped in the middle of a swap", func() bool {
		c.pass()
		s.signal(c.t, unix.SIGSTOP)
		eventually(c.t, "all of the process stands still", func() bool { return s.standsStill(c.t) })
		if s.inTheMiddle(c.t) {
			return true
		}
		s.signal(c.t, unix.SIGCONT)
		return false
	})
	c.stops++
}

// pass leaves everybody alone for a moment, so that the next blow falls anywhere.
// Nothing depends on how long it is.
func (c *cookTrial) pass() { time.Sleep(time.Duration(c.rng.Int64N(int64(400 * time.Millisecond)))) }

// awaitHalt waits until a newcomer has stopped itself. One that got through its
// first swap without that call is stopped in another one.
func (c *cookTrial) awaitHalt(s *swapper) {
	c.t.Helper()
	eventually(c.t, "a newcomer is in its first swap", func() bool {
		return s.told(c.t, "end") > 0 || s.told(c.t, "begin") > 0 && s.standsStill(c.t)
	})
	c.stop(s)
}

// crash takes a host's power away, and brings it back with other processes.
func (c *cookTrial) crash(h host) {
	c.t.Helper()
	lab(c.t, "host", "crash", h.name)
	dead := c.members(h)
	for _, s := range dead {
		c.bury(s)
	}
	c.await(several)
	lab(c.t, "host", "boot", h.name)
	for range dead {
		c.start(h, "")
	}
	c.crashes++
}

// cut takes a host's cable away until the others have made several swaps. What one
// of its swappers, killed meanwhile, has sent may be carried out after that.
func (c *cookTrial) cut(h host) {
	c.t.Helper()
	lab(c.t, "net", "cut", h.name)
	victim := c.any(c.members(h))
	victim.signal(c.t, unix.SIGKILL)
	c.await(several)
	lab(c.t, "net", "heal", h.name)
	c.bury(victim)
	c.start(h, "")
	c.kills++
	c.cuts++
}

// restart makes the server forget which requests it has answered.
func (c *cookTrial) restart(host) {
	c.t.Helper()
	lab(c.t, "server", "restart")
	c.await(several)
	c.restarts++
}

func (c *cookTrial) members(h host) (those []*swapper) {
	for _, s := range c.crew {
		if s.host == h {
			those = append(those, s)
		}
	}
	return those
}

// end lets all finish the swap that they are in. It returns what everybody has told.
func (c *cookTrial) end() (events []locktest.SwapEvent) {
	c.t.Helper()
	for _, s := range c.crew {
		require.NoError(c.t, s.Input.Close())
	}
	for _, s := range c.crew {
		require.NoError(c.t, awaitExit(c.t, s.Wait), s.log)
	}
	c.crew = nil
	for _, s := range c.all {
		told, err := locktest.ReadSwaps(bytes.NewReader(s.text(c.t)))
		require.NoError(c.t, err)
		events = append(events, told...)
	}
	return events
}
