//go:build linux

package stalefs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/stalefs"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

const (
	// sweptTTL is short, so that the missing heartbeats of a process that gave up are soon noticed.
	sweptTTL = 300 * time.Millisecond
	// long is a TTL that does not end during a test.
	long = time.Hour
)

// faults are the possible faults of a call. A zombie without a delay is executed while the next
// holder has the lock.
func faults() []stalefs.Fault {
	return []stalefs.Fault{
		{Outcome: stalefs.Retransmitted},
		{Outcome: stalefs.Lost, Errno: syscall.EIO},
		{Outcome: stalefs.Lost, Errno: syscall.ETIMEDOUT},
		{Outcome: stalefs.Dropped, Errno: syscall.EIO},
		{Outcome: stalefs.Dropped, Errno: syscall.ETIMEDOUT},
		{Outcome: stalefs.Zombie, Errno: syscall.ETIMEDOUT},
		{Outcome: stalefs.Zombie, Errno: syscall.EIO, Later: 3 * time.Millisecond},
	}
}

func describe(f stalefs.Fault) string {
	if f.Errno == 0 {
		return f.Outcome.String()
	}
	return fmt.Sprintf("%s %s after %s", f.Outcome, f.Errno, f.Later)
}

// Whichever call loses its reply, and in whichever way: what the lock reports is true, and the next
// contender, on another host, acquires the lock and keeps it.
// Rule: I4, rename, release
func TestLostReplyAtEveryCall(t *testing.T) {
	t.Parallel()
	sweepAll(t, vfs.OS{}, "first acquire", "acquire", "renew", "fence", "release", "break", "take over")
}

// The same for a breaker on NFS.
// Rule: break, I4
func TestLostReplyAtEveryCallOfABreakOnNFS(t *testing.T) {
	t.Parallel()
	sweepAll(t, asNFS(vfs.OS{}), "break", "take over")
}

func sweepAll(t *testing.T, through vfs.FS, operations ...string) {
	t.Helper()
	slots := make(chan struct{}, 10) // more would starve each other and miss heartbeats
	var group sync.WaitGroup
	defer group.Wait()
	for _, op := range locktest.Operations(operations...) {
		for _, f := range faults() {
			group.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				t.Run(op.Name+", "+describe(f), func(t *testing.T) {
					t.Logf("%d calls", sweep(t, newCluster(t, 3, stalefs.Options{}), through, op, f))
				})
			})
		}
	}
}

// sweep injects a fault at each call in turn, and returns the number of calls.
func sweep(t testing.TB, c *cluster, through vfs.FS, op locktest.Operation, f stalefs.Fault) int {
	return op.Sweep(t, func(n int) *locktest.Bench { return newBench(t, c, through, f, n) })
}

// newBench creates a bench in a new place.
func newBench(t testing.TB, c *cluster, through vfs.FS, f stalefs.Fault, n int) *locktest.Bench {
	place, struck, other := c.newPlace(t), c.hosts[0], c.hosts[2]
	src := c.open(t, struck, place, through)
	t.Cleanup(func() { _ = src.Close() })
	next := c.open(t, other, place, vfs.OS{})
	t.Cleanup(func() { _ = next.Close() })
	claim := source.Claim{TTL: sweptTTL, Heartbeat: sweptTTL / 5}
	dir := c.there(place, fslock.DefaultGroup, "lock")
	return &locktest.Bench{
		TB: t, Name: "lock", Struck: src, Other: next, Claim: claim, Dead: claim,
		Strike: func() { struck.Inject(stalefs.At(n, f)) },
		Calm: func() bool {
			calls := struck.Calls()
			struck.Inject(nil)
			ageOrphan(t, dir)
			return calls > n
		},
		Land: func() {
			c.server.Land()
			ageOrphan(t, dir)
		},
		Token: func() string { return tokenIn(t, dir) },
		Taken: func(string) {},
		Gone:  func() { require.Empty(t, left(t, dir), "files are left in the lock's directory") },
	}
}

// tokenIn returns the token of the lock on the server's disk, "" if it is free.
func tokenIn(t testing.TB, dir string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "lock.locked"))
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	require.NoError(t, err)
	return fslock.ParseRecord("lock", content).Token
}

// left lists the lock's directory, if it exists.
func left(t testing.TB, dir string) []os.DirEntry {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		require.NoError(t, err)
	}
	return entries
}

// ageOrphan spares the test the ten seconds for which a directory without a lock file must be left
// alone.
func ageOrphan(t testing.TB, dir string) {
	t.Helper()
	if len(left(t, dir)) > 0 && tokenIn(t, dir) == "" {
		old := time.Now().Add(-time.Minute)
		require.NoError(t, os.Chtimes(dir, old, old))
	}
}
