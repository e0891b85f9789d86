package mongo_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/mongolab"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/lockgroup/batch"
	"github.com/multilock/go/multilock"
)

// Of several hosts that start the same jobs, one runs each; the barrier opens when
// all are done.
func TestOnceAndBarrier(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	c := l.collection()
	var runs [4]atomic.Int32
	var hosts sync.WaitGroup
	members := []string{"job0", "job1", "job2", "job3"}
	barrier, err := lockgroup.NewBarrier(l.open(c, "jobs"), lockgroup.BarrierOptions{Members: members, Poll: 20 * time.Millisecond})
	require.NoError(t, err)
	for range 3 {
		src := l.open(c, "jobs")
		hosts.Go(func() {
			for job, name := range members {
				_, err := lockgroup.Once(within(t), src, name, lockgroup.OnceOptions{}, func(context.Context) error {
					runs[job].Add(1)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	report, err := barrier.Wait(within(t))
	require.NoError(t, err)
	require.True(t, report.OK())
	hosts.Wait()
	for job := range runs {
		require.EqualValues(t, 1, runs[job].Load(), "job %d", job)
	}
}

// Jobs of one tick run once over all hosts, by the server's clock.
func TestOncePerTick(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	c := l.collection()
	var runs atomic.Int32
	for range 3 {
		_, err := lockgroup.Once(within(t), l.open(c, ""), "sync", lockgroup.OnceOptions{Every: lockgroup.EverySpan(24 * time.Hour)}, func(context.Context) error {
			runs.Add(1)
			return nil
		})
		require.NoError(t, err)
	}
	require.Equal(t, int32(1), runs.Load())
}

func TestBatchOnTwoHosts(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	c := l.collection()
	var runs [12]atomic.Int32
	var jobs []batch.Job
	for n := range runs {
		jobs = append(jobs, batch.Job{Name: fmt.Sprint("page", n), Work: func(context.Context, batch.Attempt) error {
			runs[n].Add(1)
			return nil
		}})
	}
	reports := make(chan batch.Report)
	for range 2 {
		src := l.open(c, "convert")
		go func() {
			b, err := batch.New(src, jobs, batch.Options{Workers: 3})
			if err != nil {
				t.Error(err)
			}
			report, err := b.Run(within(t))
			if err != nil {
				t.Error(err)
			}
			reports <- report
		}()
	}
	for range 2 {
		report := <-reports
		require.Equal(t, len(runs), report.Done)
	}
	for n := range runs {
		require.EqualValues(t, 1, runs[n].Load(), "job %d", n)
	}
}

func TestSlots(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	c := l.collection()
	var inside atomic.Int32
	var hosts sync.WaitGroup
	for range 4 {
		src := l.open(c, "")
		hosts.Go(func() {
			for range 3 {
				slot, err := lockgroup.AcquireSlot(within(t), src, "render", 2, multilock.Options{Poll: 20 * time.Millisecond})
				if err != nil {
					t.Error(err)
					return
				}
				if inside.Add(1) > 2 {
					t.Error("more than two are inside")
				}
				inside.Add(-1)
				if err := slot.Release(within(t)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	hosts.Wait()
}

// While a lock passes from one to the next and somebody always has one, no barrier
// opens.
func TestVacantSeesEveryHolder(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	c := l.collection()
	src, asker := l.open(c, "relay"), l.open(c, "relay")
	held := try(t, src, "leg0", multilock.Options{TTL: long})
	over := make(chan struct{})
	var asking sync.WaitGroup
	asking.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
			}
			vacant, err := asker.Vacant(within(t))
			if vacant || err != nil {
				t.Errorf("vacant: %t, %v", vacant, err)
				return
			}
		}
	})
	for leg := range 30 {
		next := try(t, src, fmt.Sprint("leg", (leg+1)%3), multilock.Options{TTL: long})
		require.NoError(t, held.Release(within(t)))
		held = next
	}
	close(over)
	asking.Wait()
	require.NoError(t, held.Release(within(t)))
	vacant, err := asker.Vacant(within(t))
	require.NoError(t, err)
	require.True(t, vacant)
}

// TestRevision: whatever happens to a result, the revision tells.
func TestRevision(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	c := l.collection()
	src, reader := l.open(c, "jobs"), l.open(c, "jobs")
	seen := map[string]bool{}
	changed := func() {
		t.Helper()
		revision, err := reader.Revision(within(t))
		require.NoError(t, err)
		require.False(t, seen[revision], "%q was the revision before", revision)
		seen[revision] = true
		again, err := reader.Revision(within(t))
		require.NoError(t, err)
		require.Equal(t, revision, again)
	}
	changed()
	lock, other := try(t, src, "one", multilock.Options{TTL: long}), try(t, src, "two", multilock.Options{TTL: long})
	for _, change := range []func() error{
		func() error { return lock.Commit(within(t), result(lock, 1)) },
		func() error { return lock.Commit(within(t), result(lock, 0)) },
		func() error { return other.Commit(within(t), result(other, 0)) },
		func() error { return lock.Forget(within(t)) },
		func() error { return lock.Commit(within(t), result(lock, 0)) },
	} {
		require.NoError(t, change())
		changed()
	}
	require.NoError(t, lock.Release(within(t)))
	require.NoError(t, other.Release(within(t)))
}
