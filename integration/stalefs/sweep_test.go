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
	// sweptTTL is short, so that the silence of who gave up soon tells.
	sweptTTL = 300 * time.Millisecond
	// long is a time to live that does not end during a test.
	long = time.Hour
)

// faults are what can become of a call. A zombie without a time rises when the
// next holder has the lock.
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

// Whichever call loses its reply, and however: what the lock says is true, and the next
// contender, on another host, gets the lock and keeps it.
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
	slots := make(chan struct{}, 10) // who gets no processor for long cannot tell others' silence from its own
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

// sweep lets a fault strike at each call in turn, and says how many there are.
func sweep(t testing.TB, c *cluster, through vfs.FS, op locktest.Operation, f stalefs.Fault) int {
	return op.Sweep(t, func(n int) *locktest.Bench { return newBench(t, c, through, f, n) })
}

// newBench is in a place of its own.
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
		Gone:  func() { require.Empty(t, left(t, dir), "somebody's files are in the way") },
	}
}

// tokenIn is whose the lock is on the server's disk, "" if there is none.
func tokenIn(t testing.TB, dir string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "lock.locked"))
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	require.NoError(t, err)
	return fslock.ParseRecord("lock", content).Token
}

// left is what is in the lock's directory, if there is one.
func left(t testing.TB, dir string) []os.DirEntry {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		require.NoError(t, err)
	}
	return entries
}

// ageOrphan spares the test the ten seconds for which a directory without a lock
// file has to be left alone.
func ageOrphan(t testing.TB, dir string) {
	t.Helper()
	if len(left(t, dir)) > 0 && tokenIn(t, dir) == "" {
		old := time.Now().Add(-time.Minute)
		require.NoError(t, os.Chtimes(dir, old, old))
	}
}
