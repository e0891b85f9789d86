package postgres_test

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/pglab"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/pglock"
	"github.com/multilock/go/multilock/source"
)

// smallDisk is the size of a disk that leaves the server some room, in MiB.
const smallDisk = 128

func startSmall(t *testing.T) *pglab.Server {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root, to mount a small file system")
	}
	return pglab.StartSmall(t, smallDisk)
}

// impatient opens a source with a short timeout, after creating the schema, which takes longer on a
// busy server.
func impatient(t *testing.T, s *pglab.Server, place string) *pglock.Source {
	t.Helper()
	makeSchema(t, open(t, s.Address, place, ""))
	return openWith(t, pglock.Options{Place: pglock.Place{URL: pglab.URL(s.Address, "schema="+place), Timeout: 3 * time.Second}})
}

// wait acquires and releases a lock in the background. trouble gets the errors of the wait.
func wait(t *testing.T, src *pglock.Source, name string) (trouble, done chan error) {
	t.Helper()
	trouble, done = make(chan error, 1000), make(chan error, 1)
	go func() {
		next, err := multilock.Acquire(within(t), src, name, multilock.Options{TTL: time.Minute, Trouble: func(err error) { trouble <- err }})
		if err == nil {
			err = next.Release(within(t))
		}
		done <- err
	}()
	return trouble, done
}

// TestFullDisk: while the server's disk is full, held locks can be renewed and released. A contender
// gets an error or keeps waiting, and acquires the lock once there is room.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	s := startSmall(t)
	src := impatient(t, s, schema())
	lock := hold(t, src, "nightly", long)
	s.Fill()
	var err error
	names := 0
	// Until the table has to grow. If a busy server delays its reply for long, TryAcquire is unsure.
	for ; (err == nil || errors.Is(err, source.ErrUnsure)) && names < 300; names++ {
		_, err = multilock.TryAcquire(within(t), src, fmt.Sprint("x", names), multilock.Detached{Options: multilock.Options{TTL: long}})
	}
	require.ErrorIs(t, err, source.ErrPassing)
	require.NotErrorIs(t, err, source.ErrUnsure)
	require.ErrorContains(t, err, "the server's disk is full")
	t.Logf("after %d locks: %v", names, err)

	troubles, done := wait(t, src, "one more")
	require.ErrorContains(t, <-troubles, "the server's disk is full")
	require.NoError(t, lock.Verify(within(t)))
	require.NoError(t, lock.Release(within(t)))
	s.Empty()
	require.NoError(t, <-done)
	require.NoError(t, hold(t, src, "nightly", long).Release(within(t)))
}

// TestFullJournal: a server without room for its write-ahead log shuts down, and cannot start until
// there is room. No holder loses its lock because of this, and waiters keep waiting.
func TestFullJournal(t *testing.T) {
	t.Parallel()
	s := startSmall(t)
	place := schema()
	src := impatient(t, s, place)
	lock := hold(t, src, "nightly", long)
	_, done := wait(t, src, "nightly")
	require.Eventually(t, func() bool { return s.Value("SELECT count(*) FROM "+place+".entry WHERE key LIKE 'wait/%'") == "1" }, watchdog, 10*time.Millisecond)
	s.Fill()
	s.Exhaust()
	_, err := multilock.TryAcquire(within(t), src, "other", multilock.Options{})
	require.ErrorIs(t, err, source.ErrPassing)
	require.Error(t, lock.Release(within(t)))
	s.Empty()
	s.Begin()
	require.NoError(t, lock.Release(within(t)))
	require.NoError(t, <-done)
}
