package fslock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// queueOf is the directory of the tickets for the swept lock.
func queueOf(base string) string {
	return filepath.Join(base, ".multilock", "groups", fslock.DefaultGroup, "queue", sweptName)
}

// playQueue queues until no ticket is ahead, and leaves.
func playQueue(p *player) error {
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	place, err := multilock.Enqueue(ctx, p.src, sweptName, multilock.Options{TTL: sweptTTL, Poll: 10 * time.Millisecond})
	if err != nil {
		return err
	}
	place.Leave()
	return nil
}

// prepareDeadTicket leaves the ticket of a process that is gone.
func prepareDeadTicket(p *player) error {
	if err := prepareBase(p); err != nil {
		return err
	}
	return drawFor(p.plain, theDead(p.self), 1)
}

// drawFor draws a ticket for a process that does nothing any more.
func drawFor(src *fslock.Source, who process.Identity, number int) error {
	return drawAs(src, claim(who, sweptTTL, sweptBeat), number)
}

func drawAs(src *fslock.Source, claim source.Claim, number int) error {
	queue, err := src.Queue(sweptName)
	if err != nil {
		return err
	}
	c, err := queue.Contend(context.Background(), fmt.Sprintf("%020d-%s", number, source.NewToken()), claim, source.StalePolicy{})
	if err != nil {
		return err
	}
	lease, err := c.Try(context.Background())
	if err != nil {
		return err
	}
	return errors.Join(c.Close(), lease.Close(), queue.Close())
}

// requireQueued: whatever failed, the next waiter gets through, as the rest of the sweep shows; the queue
// does not affect the lock itself.
func requireQueued(t *testing.T, o struck) {
	t.Helper()
	require.Empty(t, tokenOnDisk(t, o.base))
	require.NotErrorIs(t, o.err, source.ErrUnsure, "a ticket that is in doubt is not the lock")
}

// Dead tickets ahead are watched at the same time, and leave nothing.
// Rule: queue
func TestTicketsOfTheDeadArePassedOver(t *testing.T) {
	for view, who := range views(t) {
		t.Run(view, func(t *testing.T) {
			base := fresh(t)
			src := open(t, fslock.Options{Base: base, FS: sharedFS(), Self: who})
			for n := range 5 {
				require.NoError(t, drawFor(src, theDead(self(t)), n+1))
			}
			require.Len(t, namesIn(t, queueOf(base)), 5)
			lock := acquire(t, src, sweptName, multilock.Options{TTL: long, Poll: 10 * time.Millisecond, Fair: true})
			require.NoDirExists(t, queueOf(base))
			require.NoError(t, lock.Release(t.Context()))
			require.NoDirExists(t, filepath.Join(base, ".multilock", "groups", sweptName), "no history tells of tickets")
		})
	}
}

// An entry that is not a ticket, or cannot be read, does not block waiters.
// Rule: queue
func TestWhatIsNoTicketIsInNobodysWay(t *testing.T) {
	base := fresh(t)
	src := open(t, fslock.Options{Base: base})
	ticket := func(number int) string {
		return filepath.Join(queueOf(base), fmt.Sprintf("%020d-%s", number, source.NewToken()))
	}
	require.NoError(t, os.MkdirAll(queueOf(base), 0o777))
	require.NoError(t, os.WriteFile(ticket(1), nil, 0o666), "a file")
	require.NoError(t, os.Mkdir(ticket(2), 0o777), "what a crash leaves of a release")
	foreign := ticket(3)
	require.NoError(t, os.Mkdir(foreign, 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(foreign, filepath.Base(foreign)+".locked"), []byte("node7 4711\nnonsense"), 0o666))
	require.NoError(t, os.WriteFile(filepath.Join(queueOf(base), "99999999999999999999-notes.txt"), nil, 0o666))
	lock := acquire(t, src, sweptName, multilock.Options{Poll: 10 * time.Millisecond, Fair: true})
	require.NoError(t, lock.Release(t.Context()))
}

// A waiter that gives up reports the process ahead, and does not block others.
// Rule: queue
func TestGivingUpInTheQueue(t *testing.T) {
	base := fresh(t)
	src := open(t, fslock.Options{Base: base})
	first, err := multilock.Enqueue(within(t), src, sweptName, multilock.Options{})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err = multilock.Acquire(ctx, src, sweptName, multilock.Options{Fair: true})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, multilock.ErrHeld)
	var queued *multilock.QueuedError
	require.ErrorAs(t, err, &queued)
	require.Equal(t, 1, queued.Ahead)
	require.Len(t, namesIn(t, queueOf(base)), 1)
	first.Leave()
	require.NoDirExists(t, queueOf(base))
}

// A waiter whose ticket was removed queues again, at the end.
// Rule: queue
func TestTicketThatIsLost(t *testing.T) {
	base := fresh(t)
	src := open(t, fslock.Options{Base: base})
	first, err := multilock.Enqueue(within(t), src, sweptName, multilock.Options{})
	require.NoError(t, err)
	got := make(chan error, 1)
	ctx := within(t)
	go func() {
		second, err := multilock.Enqueue(ctx, src, sweptName, multilock.Options{TTL: sweptTTL, Poll: 10 * time.Millisecond})
		if err == nil {
			second.Leave()
		}
		got <- err
	}()
	require.Eventually(t, func() bool { return len(namesIn(t, queueOf(base))) == 2 }, watchdog, time.Millisecond)
	lost := namesIn(t, queueOf(base))[1]
	require.NoError(t, os.RemoveAll(filepath.Join(queueOf(base), lost)))
	require.Eventually(t, func() bool {
		names := namesIn(t, queueOf(base))
		return len(names) == 2 && names[1] >= lost
	}, watchdog, time.Millisecond)
	first.Leave()
	require.NoError(t, <-got)
}

// A dead waiter delays those behind for no longer than the default, whatever the TTL of the lock.
// Rule: queue
func TestTicketDoesNotLastAsLongAsTheLock(t *testing.T) {
	src := open(t, fslock.Options{Base: fresh(t)})
	place, err := multilock.Enqueue(within(t), src, sweptName, multilock.Options{TTL: 24 * time.Hour})
	require.NoError(t, err)
	defer place.Leave()
	queue, err := src.Queue(sweptName)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, queue.Close()) })
	names, err := queue.Names(t.Context())
	require.NoError(t, err)
	require.Len(t, names, 1)
	seen, err := multilock.Inspect(t.Context(), queue, names[0], multilock.StalePolicy{})
	require.NoError(t, err)
	require.Equal(t, multilock.DefaultTTL, seen.Record.TTL)
}

// A ticket that cannot be judged, or is dead and cannot be removed by this user, does not delay waiters.
// Rule: queue
func TestTicketsOutOfReach(t *testing.T) {
	for name, deny := range map[string]faultfs.Injector{
		"may not be opened":  denyingAt("opendir", "/queue/"+sweptName+"/00000000000000000001-", syscall.EACCES, -1),
		"may not be read":    denyingAt("open", "/queue/"+sweptName+"/00000000000000000001-", syscall.EACCES, -1),
		"may not be removed": denyingAt("unlink", "/queue/"+sweptName+"/00000000000000000001-", syscall.EPERM, -1),
	} {
		t.Run(name, func(t *testing.T) {
			base, faulty := fresh(t), faultfs.New(vfs.OS{}, nil)
			require.NoError(t, drawFor(open(t, fslock.Options{Base: base}), theDead(self(t)), 1))
			src := open(t, fslock.Options{Base: base, FS: faulty})
			faulty.Inject(deny)
			acquire(t, src, sweptName, multilock.Options{Poll: 10 * time.Millisecond, Fair: true})
		})
	}
}

// Listing the group does not show tickets for its locks.
// Rule: queue, barrier
func TestTicketsAreNoLocksOfTheGroup(t *testing.T) {
	src := open(t, fslock.Options{Base: fresh(t)})
	place, err := multilock.Enqueue(within(t), src, sweptName, multilock.Options{})
	require.NoError(t, err)
	empty, err := src.Empty(t.Context())
	require.NoError(t, err)
	require.True(t, empty, "a barrier waits for what runs, not for who wants to")
	names, err := src.Names(t.Context())
	require.NoError(t, err)
	require.Empty(t, names)
	leftovers, err := src.Leftovers(t.Context())
	require.NoError(t, err)
	require.Empty(t, leftovers)
	place.Leave()
	events, err := source.Collect(src.History(t.Context(), time.Time{}))
	require.NoError(t, err)
	require.Empty(t, events)
}

// The error names an entry that blocks a queue, not the group.
// Rule: queue
func TestWhatIsInTheWayOfAQueue(t *testing.T) {
	for name, path := range map[string]func(base string) string{
		"of all":  func(base string) string { return filepath.Dir(queueOf(base)) },
		"of this": queueOf,
	} {
		t.Run(name, func(t *testing.T) {
			base := fresh(t)
			require.NoError(t, os.MkdirAll(filepath.Dir(path(base)), 0o777))
			require.NoError(t, os.WriteFile(path(base), nil, 0o666))
			_, err := multilock.Enqueue(within(t), open(t, fslock.Options{Base: base}), sweptName, multilock.Options{})
			require.ErrorIs(t, err, source.ErrInvalid)
			require.ErrorContains(t, err, queueOf(base))
		})
	}
}
