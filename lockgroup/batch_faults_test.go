//go:build unix

package lockgroup_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/vfs"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// every strikes at every n-th operation: now it is not carried out, now its reply
// is lost. No close fails: that would be no fault of a server.
func every(n int64) faultfs.Injector {
	var count atomic.Int64
	return func(op faultfs.Op) error {
		if op.Kind == "close" || count.Add(1)%n != 0 {
			return nil
		}
		return syscall.EIO
	}
}

// Over a network filesystem whose server loses requests and replies, two hosts
// start their batches again until all is done. No job runs when its result is there.
func TestBatchWithFaults(t *testing.T) {
	base, ran := t.TempDir(), newRuns()
	done := filepath.Join(base, ".multilock", "groups", fslock.DefaultGroup, "done")
	list := ran.jobs(40, func(_ context.Context, a lockgroup.Attempt) error {
		if info, err := os.Stat(filepath.Join(done, a.Name)); err == nil && info.Mode().IsRegular() {
			t.Errorf("%s runs though its result is there", a.Name)
		}
		return nil
	})
	var hosts sync.WaitGroup
	for _, n := range []int64{61, 83} {
		hosts.Go(func() { persist(t, base, list, every(n)) })
	}
	hosts.Wait()
	entries, err := os.ReadDir(done)
	require.NoError(t, err)
	require.Len(t, entries, len(list))
}

// persist starts a batch again until it succeeds.
func persist(t *testing.T, base string, list []lockgroup.Job, faults faultfs.Injector) {
	fs := faultfs.New(vfs.OS{}, nil)
	fs.Describe(vfs.FileSystem{Type: "test"})
	src, err := fslock.Open(fslock.Options{Base: base, FS: fs})
	if err != nil {
		t.Error(err)
		return
	}
	defer src.Close()
	fs.Inject(faults)
	ctx, cancel := context.WithTimeout(t.Context(), 3*generous)
	defer cancel()
	for err := context.Canceled; err != nil && ctx.Err() == nil; {
		var b *lockgroup.Batch
		if b, err = lockgroup.NewBatch(src, list, lockgroup.BatchOptions{Workers: 3, Options: multilock.Options{TTL: 3 * time.Second}}); err == nil {
			_, err = b.Run(ctx)
		}
	}
	if ctx.Err() != nil {
		t.Error("the batch does not come to an end")
	}
}
