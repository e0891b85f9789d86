package cooklock_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/cooklock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/vfs"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// A process dies in the middle of a swap, before or after any operation on disk: nothing
// that it does later counts. Its swap was made or it was not, the next one succeeds and
// says which, and no value is lost or comes back.
func TestSwapDiesAtEveryOperation(t *testing.T) {
	for name, fs := range map[string]vfs.FileSystem{"local": {Type: "ext4", Local: true}, "network": {Type: "network"}} {
		for _, phase := range []faultfs.Phase{faultfs.Before, faultfs.After} {
			t.Run(name+"/"+phase.String(), func(t *testing.T) {
				t.Parallel()
				made := map[string]int{}
				n := 0
				for next := dieAt(t, fs, phase, n); next != ""; next = dieAt(t, fs, phase, n) {
					made[next]++
					n++
				}
				require.Greater(t, made["first"], 5, "deaths before the swap was made")
				require.Greater(t, made["struck"], 2, "deaths after it")
				require.Equal(t, n, made["first"]+made["struck"])
			})
		}
	}
}

// dieAt lets a swap die at its nth operation. It returns what the next one found, "" if
// the swap was through before.
func dieAt(t *testing.T, fs vfs.FileSystem, phase faultfs.Phase, n int) (found string) {
	t.Helper()
	base := t.TempDir()
	others(t, base, "first")
	faulty := faultfs.New(vfs.OS{}, nil)
	faulty.Describe(fs)
	files, err := fslock.Open(fslock.Options{Base: base, FS: faulty})
	require.NoError(t, err)
	t.Cleanup(func() { _ = files.Close() })

	dead := false
	faulty.Inject(func(op faultfs.Op) error {
		if op.N == n && op.Phase == phase {
			dead = true
		}
		if dead && !strings.HasSuffix(op.Kind, "close") {
			return syscall.EIO
		}
		return nil
	})
	events := []locktest.SwapEvent{{Op: "begin", Value: "first"}, locktest.SwapAnswer("first", nil, 1, nil), {Op: "begin", Value: "struck", Time: locktest.Now()}}
	struck := cooklock.LedgerRegister{Ledger: files, Name: "nightly", TTL: multilock.DefaultTTL}
	_, _, err = struck.Swap(t.Context(), []byte("struck"))
	if !dead {
		require.NoError(t, err)
		return ""
	}
	next := locktest.SwapEvent{Op: "begin", Value: "next", Time: locktest.Now()}
	found = others(t, base, "next")
	_, number, err := register(t, base, "nightly").Peek(t.Context())
	require.NoError(t, err)
	_, err = locktest.CheckSwaps(append(events, next, locktest.SwapAnswer("next", []byte(found), number, nil)))
	require.NoError(t, err)
	return found
}
