package fslock_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/process"
)

// frozenTTL is the TTL of tickets whose holders are stopped, or have to notice that.
const frozenTTL = time.Second

// line is a lock with the processes that queue for it.
type line struct {
	base string
	held *multilock.Lock // by the test
}

func newLine(t *testing.T) line {
	t.Helper()
	base := fresh(t)
	return line{base, acquire(t, open(t, fslock.Options{Base: base}), sweptName, multilock.Options{TTL: long})}
}

// join starts one more process that queues, and returns the mark of its tickets.
func (l line) join(t *testing.T, who process.Identity, ttl time.Duration) (n neighbour, mark string) {
	t.Helper()
	before := l.tickets()
	n = newNeighbour(t, setting{}, order{Base: l.base, Self: who})
	n.Tell(t, order{Do: "acquire", Name: sweptName, TTL: ttl, Fair: true})
	require.Eventually(t, func() bool {
		new := slices.DeleteFunc(l.tickets(), func(ticket string) bool { return slices.Contains(before, ticket) })
		if len(new) != 1 {
			return false
		}
		// A process that is stopped while it draws a ticket has it when it resumes, with its old number.
		drawn, _ := filepath.Glob(filepath.Join(queueOf(l.base), new[0], "*.locked"))
		_, mark, _ = strings.Cut(new[0], "-")
		return len(drawn) == 1
	}, watchdog, time.Millisecond)
	return n, mark
}

// tickets are the tickets in the queue, in order.
func (l line) tickets() (names []string) {
	found, _ := os.ReadDir(queueOf(l.base))
	for _, entry := range found {
		names = append(names, entry.Name())
	}
	return names
}

// stands reports whether the tickets with these marks are first in the queue, in this order, with so many
// after them.
func (l line) stands(marks []string, after int) bool {
	tickets := l.tickets()
	return len(tickets) == len(marks)+after && slices.EqualFunc(tickets[:len(marks)], marks, strings.HasSuffix)
}

// sign is the last heartbeat that a ticket shows.
func (l line) sign(mark string) (latest time.Time) {
	for _, form := range []string{"*-" + mark, "*-" + mark + "/*.locked"} {
		found, _ := filepath.Glob(filepath.Join(queueOf(l.base), form))
		for _, path := range found {
			if info, err := os.Stat(path); err == nil && info.ModTime().After(latest) {
				latest = info.ModTime()
			}
		}
	}
	return latest
}

// freeze stops a process, which queues and renews its ticket, until its heartbeats have been missing for
// longer than a ticket's TTL.
func freeze(t *testing.T, l line, n neighbour, mark string) {
	t.Helper()
	first := l.sign(mark)
	require.Eventually(t, func() bool { return l.sign(mark).After(first) }, watchdog, time.Millisecond)
	n.Signal(t, syscall.SIGSTOP)
	time.Sleep(frozenTTL * 5 / 4)
}

// takes has a process acquire the lock, hold it for a moment in which no other process gets it, and release
// it.
func takes(t *testing.T, l line, n neighbour) {
	t.Helper()
	require.Empty(t, n.hear(t).Error)
	n.must(t, order{Do: "verify"})
	_, err := multilock.TryAcquire(within(t), open(t, fslock.Options{Base: l.base}), sweptName, multilock.Options{})
	require.ErrorIs(t, err, multilock.ErrHeld)
	n.must(t, order{Do: "verify"})
	n.must(t, order{Do: "release"})
}

// A waiter that is suspended for longer than its ticket's TTL does not delay the others: it is skipped, and
// goes to the end of the queue when it resumes; even if it was first, and was already acquiring the lock.
// Rule: queue
func TestFrozenInLine(t *testing.T) {
	for view, who := range views(t) {
		for name, ahead := range map[string]int{"the first": 0, "the second": 1} {
			t.Run(view+"/"+name, func(t *testing.T) {
				t.Parallel()
				l := newLine(t)
				var order []neighbour
				var marks []string
				join := func(who process.Identity) {
					n, mark := l.join(t, who, long)
					order, marks = append(order, n), append(marks, mark)
				}
				for range ahead {
					join(self(t))
				}
				frozen, mark := l.join(t, self(t), frozenTTL)
				freeze(t, l, frozen, mark)
				join(who)
				require.Eventually(t, func() bool { return l.stands(marks, 0) }, watchdog, time.Millisecond, "he is passed over")
				join(who)
				frozen.Signal(t, syscall.SIGCONT)
				require.Eventually(t, func() bool { return l.stands(marks, 1) }, watchdog, time.Millisecond, "he is at the end of the line")
				require.NoError(t, l.held.Release(t.Context()))
				for _, n := range append(order, frozen) {
					takes(t, l, n)
				}
				require.NoDirExists(t, queueOf(l.base))
			})
		}
	}
}

// A waiter with none behind it resumes, and draws a ticket again; later ones are behind it.
// Rule: queue
func TestFrozenAloneInLine(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	frozen, mark := l.join(t, self(t), frozenTTL)
	lost := l.tickets()[0]
	freeze(t, l, frozen, mark)
	frozen.Signal(t, syscall.SIGCONT)
	require.Eventually(t, func() bool {
		tickets := l.tickets()
		return len(tickets) == 1 && tickets[0] != lost
	}, watchdog, time.Millisecond)
	next, _ := l.join(t, self(t), long)
	require.NoError(t, l.held.Release(t.Context()))
	takes(t, l, frozen)
	takes(t, l, next)
}
