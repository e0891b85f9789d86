//go:build unix

package batch_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/lockgroup/batch"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/fslock/fslocktest"
	"github.com/multilock/go/multilock/vfs"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// oneIn makes one operation in n fail, at random: either it is not executed, or its reply is lost. Faults
// at regular intervals could fall into step with a batch that is started again after each of them: a
// start with as many operations as the interval would meet one at the same place every time. Closing a
// directory is not a request.
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

// On a network filesystem whose server loses requests and replies, two hosts start their batches again until
// all is done. No job runs when it has a result, and recorded results stay.
// Rule: chunks, commit, I7
func TestBatchWithFaults(t *testing.T) {
	base, ran := t.TempDir(), newRuns()
	src := fslocktest.Open(t, fslock.Options{Base: base})
	list := ran.jobs(40, func(ctx context.Context, a batch.Attempt) error {
		if results(t, src)[a.Name].Attempt > 0 && a.Lock.Remaining() > 0 {
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
	recordedLast := results(t, src)
	for _, job := range list {
		require.NotZero(t, recordedLast[job.Name].Attempt, job.Name)
		require.True(t, recordedLast[job.Name].OK(), job.Name)
		require.NotZero(t, ran.of(job.Name))
	}
}

// results returns all recorded results.
func results(t *testing.T, src *fslock.Source) map[string]multilock.Result {
	var mu sync.Mutex
	all := map[string]multilock.Result{}
	names, err := src.Results(t.Context())
	if err == nil {
		err = joblist.EachResult(t.Context(), src, names, func(name string, r multilock.Result) {
			mu.Lock()
			defer mu.Unlock()
			all[name] = r
		})
	}
	if err != nil {
		t.Error(err)
	}
	return all
}

// persist starts a batch again until it succeeds, and returns how many attempts it has recorded.
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
		b, err := batch.New(src, list, batch.Options{Workers: 3, TTL: time.Second})
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
