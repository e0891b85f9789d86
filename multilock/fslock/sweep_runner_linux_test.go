package fslock_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/testkit/sweep"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/process"
)

// take waits for the lock as long as needed. Locks of the sweep are short-lived; this lock is not.
func take(t *testing.T, base string, s scene, as process.Identity) *multilock.Lock {
	t.Helper()
	ageOrphan(t, base)
	src := open(t, fslock.Options{Base: base, FS: sharedFS(), Self: as, LegacyPeers: s.legacy})
	opt := multilock.Options{TTL: long, Poll: 10 * time.Millisecond, Fair: s.queues}
	lock, err := multilock.Acquire(within(t), src, sweptName, opt)
	require.NoError(t, err, "whatever happened before, the lock is to be had")
	require.Equal(t, lock.Record().Token, tokenOnDisk(t, base))
	return lock
}

// ageOrphan saves the test the ten seconds of age that a directory without a lock file needs; the two
// seconds of watching remain.
func ageOrphan(t *testing.T, base string) {
	t.Helper()
	dir := filepath.Join(base, fslock.DefaultGroup, sweptName)
	if _, err := os.Stat(dir); err != nil || tokenOnDisk(t, base) != "" {
		return
	}
	old := time.Now().Add(-time.Minute)
	require.NoError(t, os.Chtimes(dir, old, old))
}

func giveBack(t *testing.T, lock *multilock.Lock) {
	t.Helper()
	require.NoError(t, lock.Verify(t.Context()))
	require.NoError(t, lock.Release(context.Background()))
}

// markIn is the name of the one mark that the filesystem's test has left.
func markIn(t *testing.T, base string) string {
	t.Helper()
	marks := slices.DeleteFunc(namesIn(t, filepath.Join(base, ".multilock")), func(name string) bool { return !strings.HasPrefix(name, "fs-") })
	require.Len(t, marks, 1)
	return marks[0]
}

// tokenOnDisk is the holder's token, read without the library; "" if the lock is free.
func tokenOnDisk(t *testing.T, base string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(base, fslock.DefaultGroup, sweptName, sweptName+".locked"))
	if os.IsNotExist(err) {
		return ""
	}
	require.NoError(t, err)
	record := fslock.ParseRecord(sweptName, data)
	require.Empty(t, record.Foreign)
	require.NotEmpty(t, record.Token)
	return record.Token
}

// requireTidy checks that nothing is left over that the janitor would not remove: at once, if its creator
// is known to be gone, and everything else after a day.
func requireTidy(t *testing.T, base string) {
	t.Helper()
	require.Empty(t, namesIn(t, filepath.Join(base, fslock.DefaultGroup)), "the group is not empty")
	require.Empty(t, namesIn(t, filepath.Join(base, ".multilock", "groups", fslock.DefaultGroup, "queue")), "there is still a queue")
	for _, name := range namesIn(t, filepath.Join(base, ".multilock")) {
		require.Regexp(t, `^(staging|groups|fs-[a-z0-9.]+-[0-9a-f]{12}\.replaces)$`, name)
	}
	here := open(t, fslock.Options{Base: base, FS: sharedFS()})
	sweepClean(t, here)

	staging := filepath.Join(base, ".multilock", "staging")
	ageStaged(t, base)
	sweepClean(t, open(t, fslock.Options{Base: base, FS: sharedFS(), Self: elsewhere(t)}))
	require.Empty(t, namesIn(t, staging), "the janitor leaves something for ever")
}

// sweepClean sweeps, and checks that nothing dead is left.
func sweepClean(t *testing.T, src *fslock.Source) {
	t.Helper()
	_, err := src.Sweep(t.Context())
	require.NoError(t, err)
	left, err := src.Leftovers(t.Context())
	require.NoError(t, err)
	for _, l := range left {
		require.False(t, l.Dead, "%s: %s", l.Entry, l.Why)
	}
}

func namesIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// requireClosed checks that this process has nothing open below base, once a heartbeat in progress has
// returned.
func requireClosed(t *testing.T, base string) {
	t.Helper()
	require.Eventually(t, func() bool { return len(openBelow(t, base)) == 0 }, watchdog, time.Millisecond, "%v", openBelow(t, base))
}

func openBelow(t *testing.T, base string) (open []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, e := range entries {
		target, err := os.Readlink(filepath.Join("/proc/self/fd", e.Name()))
		if err == nil && (strings.HasPrefix(target, base+"/") || target == base) {
			open = append(open, target)
		}
	}
	return open
}

// failingSweep makes the test play the sweep that fails.
const failingSweep = "MULTILOCK_TEST_FAILING_SWEEP"

// Under -failfast, operations that a sweep starts after a failure are not run, and do not report that the
// sweep has ended. It must end all the same, in all scenes.
// Rule: none (test helper)
func TestFailingSweepEnds(t *testing.T) {
	if os.Getenv(failingSweep) != "" {
		sweep.SideBySide(t, []string{"a scene that fails", "a scene without an end"}, func(t *testing.T, scene string) {
			sweep.Operations(t, 2, func(t *testing.T, n int) (ended bool) {
				require.False(t, scene == "a scene that fails" && n == 3)
				return false
			})
		})
		return
	}
	cmd := exec.CommandContext(within(t), "/proc/self/exe", "-test.run", "^TestFailingSweepEnds$", "-test.failfast", "-test.timeout", "30s")
	cmd.Env = append(os.Environ(), failingSweep+"=yes")
	output, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(output), "a_scene_that_fails/3")
	require.NotContains(t, string(output), "timed out")
}
