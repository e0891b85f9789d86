package cooklock_test

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/internal/testkit/actor"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// scene is what a register has been through before the swap that is struck.
type scene struct {
	name    string
	network bool
	swaps   int
	crashed bool // the process of the last one ended when it had taken effect
}

func (s scene) String() string { return s.name }

func scenes() []scene {
	return []scene{
		{"first", false, 0, false}, {"later", false, 2, false}, {"after a crash", false, 1, true},
		{"first on a network", true, 0, false}, {"later on a network", true, 2, false},
	}
}

// prepare makes the register, and returns the events that did. What the first lock of
// a place makes there is made already.
func (s scene) prepare(t *testing.T, base string) []locktest.SwapEvent {
	t.Helper()
	for _, network := range []bool{false, true} {
		register, _, shut, err := part{Base: base, Network: network}.open()
		require.NoError(t, err)
		register.Name, register.TTL = "another", multilock.DefaultTTL
		_, _, err = register.Swap(t.Context(), []byte("value"))
		require.NoError(t, err)
		shut()
	}
	var out bytes.Buffer
	if s.swaps > 0 {
		require.NoError(t, part{Base: base, Who: "before", Swaps: s.swaps}.swap(&out))
	}
	events, err := locktest.ReadSwaps(&out)
	require.NoError(t, err)
	if s.crashed {
		c := start(t, "swapper", part{Base: base, Who: "crashed", Swaps: 1, How: "crash when made"})
		require.Equal(t, actor.Killed, c.Await(t))
		events = append(events, c.events(t)...)
	}
	return events
}

// follow swaps without faults until that has succeeded twice, and checks the whole
// history. On a machine that stands still in the middle of a swap it may not be known
// what became of it.
func follow(t *testing.T, base string, events []locktest.SwapEvent) []locktest.SwapEvent {
	t.Helper()
	for made := 0; made < 2; {
		var out bytes.Buffer
		require.NoError(t, part{Base: base, Who: fmt.Sprint("after", len(events)), Swaps: 1}.swap(&out))
		after, err := locktest.ReadSwaps(&out)
		require.NoError(t, err)
		last := after[len(after)-1]
		require.NotEqual(t, "fail", last.Op, "whoever comes next must succeed: %s", last.Error)
		if last.Op == "end" {
			made++
		}
		events = append(events, after...)
	}
	_, err := locktest.CheckSwaps(events)
	require.NoError(t, err, "%+v", events)
	return events
}

// faults are what a client of a network file system may answer: nothing was done, or
// it was done and the reply is lost; with the errors of a mount that gives up, and of
// a call that was carried out twice or met a handle that is gone. The two of each
// kind take turns.
func faults(n int) []syscall.Errno {
	return [][]syscall.Errno{{syscall.EIO, syscall.ENOENT}, {syscall.ETIMEDOUT, syscall.ESTALE}}[n%2]
}

// An error is an answer only if it is true, at whichever operation it comes up: a
// swap that failed is not there and never will be, one that succeeded is, and of one
// that is unsure either may be true. The next swap succeeds in any case.
func TestErrorAtEveryOperation(t *testing.T) {
	for _, s := range scenes() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for _, phase := range []faultfs.Phase{faultfs.Before, faultfs.After} {
				struck := true
				for n := 0; struck; n++ {
					struck = false
					for _, errno := range faults(n) {
						struck = strike(t, s, n, phase, errno) || struck
					}
				}
			}
		})
	}
}

// strike lets one operation fail. It returns false when the swap is through before.
func strike(t *testing.T, s scene, n int, phase faultfs.Phase, errno syscall.Errno) bool {
	t.Helper()
	base := quick(t)
	events := s.prepare(t, base)
	register, faulty, shut, err := part{Base: base, Network: s.network}.open()
	require.NoError(t, err)
	defer shut()
	var struck atomic.Value
	faulty.Inject(func(op faultfs.Op) error {
		if op.N != n || op.Phase != phase {
			return nil
		}
		struck.Store(fmt.Sprintf("%s %s %s: %s", phase, op.Kind, op.Path, unix.ErrnoName(errno)))
		return errno
	})
	begun := locktest.SwapEvent{Op: "begin", Value: "struck", Time: lastTime(events)}
	old, number, err := register.Swap(t.Context(), []byte("struck"))
	faulty.Inject(nil)
	told := locktest.SwapAnswer("struck", old, number, err)
	if struck.Load() == nil {
		require.NoError(t, err)
		return false
	}
	t.Logf("%s: %v", struck.Load(), err)
	if told.Op == "end" {
		told.Time = lastTime(events) + 1 // before those that follow
	}
	events = follow(t, base, append(events, begun, told))
	if told.Op == "fail" {
		requireNever(t, events, "struck")
	}
	return true
}

func lastTime(events []locktest.SwapEvent) (last time.Duration) {
	for _, e := range events {
		last = max(last, e.Time)
	}
	return last
}

// requireNever checks that a value was not seen by anybody.
func requireNever(t *testing.T, events []locktest.SwapEvent, value string) {
	t.Helper()
	for _, e := range events {
		require.NotEqual(t, value, e.Old)
		require.False(t, e.Op == "peek" && e.Value == value)
	}
}

// A process may end after each operation that changes something: the next one goes on from what
// it left, and its swap took effect or did not.
func TestCrashAfterEveryChange(t *testing.T) {
	sweepChildren(t, part{How: "crash", TTL: multilock.DefaultTTL}, actor.Killed, func(t *testing.T, base string, c *child, events []locktest.SwapEvent) {
		follow(t, base, append(events, c.events(t)...))
	})
}

// A process may stand still before each operation, for as long as it likes:
// others go on meanwhile, and what it does afterwards does no harm.
func TestStopAtEveryOperation(t *testing.T) {
	sweepChildren(t, part{How: "stop"}, actor.Stopped, func(t *testing.T, base string, c *child, events []locktest.SwapEvent) {
		stopped := c.events(t)
		events = follow(t, base, append(events, stopped...))
		c.GoOn(t)
		follow(t, base, append(events, c.events(t)[len(stopped):]...))
	})
}

// sweepChildren plays each scene in a process of its own that is struck at one
// operation after the other, until it comes through.
func sweepChildren(t *testing.T, p part, want actor.Fate, check func(*testing.T, string, *child, []locktest.SwapEvent)) {
	for _, s := range scenes() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for n := 0; ; n++ {
				base := quick(t)
				events := s.prepare(t, base)
				p := p
				p.Base, p.Who, p.Swaps, p.N, p.Network = base, "struck", 1, n, s.network
				c := start(t, "swapper", p)
				fate := c.Await(t)
				if fate == actor.Exited {
					require.NoError(t, c.Wait())
					require.Greater(t, n, 10, "nothing was struck")
					return
				}
				require.Equal(t, want, fate)
				check(t, base, c, events)
			}
		})
	}
}

// A full disk is an error that says so, wherever it shows first. The register stays
// as it was, and goes on when there is room again.
func TestFullDisk(t *testing.T) {
	base := quick(t)
	events := scene{swaps: 2}.prepare(t, base)
	for _, kind := range []string{"create", "mkdir", "write", "rename"} {
		register, faulty, shut, err := part{Base: base}.open()
		require.NoError(t, err)
		faulty.Inject(func(op faultfs.Op) error {
			if op.Kind == kind && op.Phase == faultfs.Before {
				return syscall.ENOSPC
			}
			return nil
		})
		_, _, err = register.Swap(t.Context(), []byte("no room"))
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.ErrorContains(t, err, "free some space")
		require.NotErrorIs(t, err, source.ErrUnsure)
		value, _, err := register.Peek(t.Context())
		require.NoError(t, err, "who only looks needs no room")
		require.Equal(t, events[len(events)-1].Value, string(value))
		shut()
	}
	requireNever(t, follow(t, base, events), "no room")
}
