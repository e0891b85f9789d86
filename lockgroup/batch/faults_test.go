//go:build unix

package batch_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/lockgroup/batch"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/fslock/fslocktest"
	"github.com/multilock/go/multilock/vfs"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// oneIn lets one operation in n fail: now it is not carried out, now its reply is
// lost. Which, chance says. At regular intervals the faults fall into step with
// a batch that is started again after each of them: a start of as many operations
// as lie between two faults meets one every time, at the same place, for ever.
// That a directory is closed is nothing that a server hears of.
func oneIn(n int, seed uint64) faultfs.Injector {
	var mu sync.Mutex
	dice := rand.New(rand.NewPCG(seed, uint64(n))) //nolint:gosec // faults need no secrecy, but to be the same again
	return func(op faultfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if op.Kind == "close" || dice.IntN(n) != 0 {
			return nil
		}
		return syscall.EIO
	}
}

// Over a network filesystem whose server loses requests and replies, two hosts
// start their batches again until all is done. No job runs when its result is
// there, and what a host has recorded stays.
func TestBatchWithFaults(t *testing.T) {
	base, ran := t.TempDir(), newRuns()
	done := filepath.Join(base, ".multilock", "groups", fslock.DefaultGroup, "done")
	list := ran.jobs(40, func(_ context.Context, a batch.Attempt) error {
		info, err := os.Stat(filepath.Join(done, a.Name))
		if err == nil && info.Mode().IsRegular() && a.Lock.Remaining() > 0 {
			t.Errorf("%s runs though its result is there", a.Name)
		}
		return nil
	})
	seed := rand.Uint64() //nolint:gosec // the same
	t.Logf("seed %d", seed)
	var hosts sync.WaitGroup
	var recorded atomic.Int64
	for _, n := range []int{61, 83} {
		hosts.Go(func() { recorded.Add(persist(t, base, list, oneIn(n, seed))) })
	}
	hosts.Wait()
	require.LessOrEqual(t, recorded.Load(), int64(len(list)), "a result that a host has recorded was replaced")
	src := fslocktest.Open(t, fslock.Options{Base: base})
	for _, job := range list {
		result, err := src.Result(t.Context(), job.Name)
		require.NoError(t, err)
		require.True(t, result.OK(), "%+v", result)
		require.NotZero(t, ran.of(job.Name))
	}
}

// persist starts a batch again until it succeeds, and returns how many attempts it
// has recorded.
func persist(t *testing.T, base string, list []batch.Job, faults faultfs.Injector) (recorded int64) {
	fs := faultfs.New(vfs.OS{}, nil)
	fs.Describe(vfs.FileSystem{Type: "test"})
	src, err := fslock.Open(fslock.Options{Base: base, FS: fs})
	if err != nil {
		t.Error(err)
		return 0
	}
	defer src.Close()
	fs.Inject(faults)
	ctx, cancel := context.WithTimeout(t.Context(), generous)
	defer cancel()
	for starts := 1; ; starts++ {
		b, err := batch.New(src, list, batch.Options{Workers: 3, Options: multilock.Options{TTL: time.Second}})
		if err != nil {
			t.Error(err)
			return recorded
		}
		report, err := b.Run(ctx)
		recorded += int64(report.Ran)
		switch {
		case err == nil:
			return recorded
		case ctx.Err() != nil:
			t.Errorf("the batch does not come to an end: start %d, %+v", starts, report)
			return recorded
		case !errors.Is(err, syscall.EIO):
			t.Error(err)
			return recorded
		}
	}
}
