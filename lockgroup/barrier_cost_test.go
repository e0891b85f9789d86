package lockgroup_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/lockgroup/internal/grouptest"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/fslock/fslocktest"
	"github.com/multilock/go/multilock/vfs"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// A poll of a barrier is one operation of the filesystem, for any kind of wait and any size of the group.
// Rule: barrier, members
func TestPollIsOneOperation(t *testing.T) {
	var members []string
	for i := range 30 {
		members = append(members, fmt.Sprint("job", i))
	}
	for poll, opt := range map[string]lockgroup.BarrierOptions{
		"rmdir .locks":                       {},
		"stat .multilock/groups/.locks/done": {Members: members},
	} {
		t.Run(poll, func(t *testing.T) {
			base, faulty := t.TempDir(), faultfs.New(vfs.OS{}, nil)
			faulty.Describe(vfs.FileSystem{Type: "test"})
			holdAndCommit(t, base, members[1:])
			ctx, cancel := context.WithCancel(grouptest.Within(t))
			defer cancel()
			polls, others := countUntil(faulty, poll, 400, cancel)
			opt.Poll, opt.Inspect = 2*time.Millisecond, time.Hour
			b, err := lockgroup.NewBarrier(fslocktest.Open(t, fslock.Options{Base: base, FS: faulty}), opt)
			require.NoError(t, err)
			_, err = b.Wait(ctx)
			require.ErrorIs(t, err, context.Canceled)
			require.GreaterOrEqual(t, polls(), 400)
			// Other operations are the renewal of a subscription, and one more read of results.
			require.LessOrEqual(t, len(others()), 20, "after the first looks a barrier does nothing but ask: %v", others())
		})
	}
}

// countUntil counts the operations that are a poll, and collects all others in the second half of the
// polls; then it cancels.
func countUntil(fs *faultfs.FS, poll string, limit int, cancel func()) (polls func() int, others func() []string) {
	var mu sync.Mutex
	count, rest := 0, []string(nil)
	fs.Inject(func(op faultfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		line := op.Kind + " " + op.Path
		switch {
		case op.Phase == faultfs.Before:
		case line == poll:
			if count++; count == limit {
				cancel()
			}
		case count > limit/2 && count < limit && !strings.HasPrefix(op.Kind, "close"):
			rest = append(rest, line)
		}
		return nil
	})
	locked := func() func() { mu.Lock(); return mu.Unlock }
	return func() int { defer locked()(); return count }, func() []string { defer locked()(); return rest }
}

// holdAndCommit holds one lock, and records the results of jobs.
func holdAndCommit(t *testing.T, base string, jobs []string) {
	t.Helper()
	src := fslocktest.Open(t, fslock.Options{Base: base})
	held, err := multilock.TryAcquire(t.Context(), src, "held", multilock.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = held.Release(context.Background()) })
	for _, name := range jobs {
		lock, err := multilock.TryAcquire(t.Context(), src, name, multilock.Options{})
		require.NoError(t, err)
		require.NoError(t, lock.Commit(t.Context(), multilock.Result{Attempt: 1, Final: true}))
		require.NoError(t, lock.Release(t.Context()))
	}
}
