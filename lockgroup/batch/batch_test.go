package batch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/lockgroup/batch"
	"github.com/multilock/go/lockgroup/internal/grouptest"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/fslock/fslocktest"
	"github.com/multilock/go/multilock/source"
)

var errWork = errors.New("the disk is full")

// runs counts how often each job was run.
type runs struct {
	mu    sync.Mutex
	count map[string]int
}

func newRuns() *runs { return &runs{count: map[string]int{}} }

func (r *runs) add(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count[name]++
}

func (r *runs) of(name string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count[name]
}

// names returns how many jobs were run.
func (r *runs) names() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.count)
}

// requireOnce requires that each of n jobs ran once.
func (r *runs) requireOnce(t *testing.T, n int) {
	t.Helper()
	require.Len(t, r.count, n)
	for name, count := range r.count {
		require.Equal(t, 1, count, name)
	}
}

// jobs returns a list of n jobs that are counted and run does.
func (r *runs) jobs(n int, does func(context.Context, batch.Attempt) error) []batch.Job {
	list := make([]batch.Job, n)
	for i := range list {
		list[i] = batch.Job{Name: fmt.Sprintf("job%03d", i+1), Command: "make", Work: func(ctx context.Context, a batch.Attempt) error {
			r.add(a.Name)
			return does(ctx, a)
		}}
	}
	return list
}

func succeeds(context.Context, batch.Attempt) error { return nil }

func prepare(t *testing.T, src multilock.Source, jobs []batch.Job, opt batch.Options) *batch.Batch {
	t.Helper()
	b, err := batch.New(src, jobs, opt)
	require.NoError(t, err)
	return b
}

// Rule: chunks, I7
func TestBatchOverHosts(t *testing.T) {
	open, ran := grouptest.Opener(t), newRuns()
	var group sync.WaitGroup
	var total atomic.Int64
	for range 3 {
		b := prepare(t, open(), ran.jobs(60, succeeds), batch.Options{Workers: 4})
		group.Go(func() {
			report, err := b.Run(grouptest.Within(t))
			if err != nil || report.Done != 60 || report.Trouble != nil {
				t.Errorf("%+v %v", report, err)
			}
			total.Add(int64(report.Ran))
		})
	}
	group.Wait()
	ran.requireOnce(t, 60)
	require.Equal(t, int64(60), total.Load())
}

// A batch that is started again continues where it stopped. Jobs that the progress map covers need no
// request of their own.
// Rule: chunks, progress-map
func TestBatchContinues(t *testing.T) {
	open, ran := grouptest.Opener(t), newRuns()
	var broken atomic.Bool
	broken.Store(true)
	list := ran.jobs(20, func(_ context.Context, a batch.Attempt) error {
		if broken.Load() && a.Seq > 10 {
			return lockgroup.ErrNotRun
		}
		return nil
	})
	report, err := prepare(t, open(), list, batch.Options{}).Run(grouptest.Within(t))
	require.ErrorIs(t, err, lockgroup.ErrNotRun)
	require.Zero(t, report.Failed)
	first := report.Done

	broken.Store(false)
	report, err = prepare(t, open(), list, batch.Options{}).Run(grouptest.Within(t))
	require.NoError(t, err)
	require.Equal(t, batch.Progress{Total: 20, Done: 20, Before: first, Ran: 20 - first}, report.Progress)

	src := &counting{Source: open()}
	report, err = prepare(t, src, list, batch.Options{}).Run(grouptest.Within(t))
	require.NoError(t, err)
	require.Equal(t, 20, report.Before)
	require.Zero(t, src.contended.Load())
	require.Zero(t, src.read.Load())
}

// A lost progress map only costs requests.
// Rule: progress-map
func TestBatchWithoutBoard(t *testing.T) {
	open, ran := grouptest.Opener(t), newRuns()
	list := ran.jobs(20, succeeds)
	_, err := prepare(t, open(), list, batch.Options{}).Run(grouptest.Within(t))
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(open().Base(), ".multilock", "groups", fslock.DefaultGroup, "manifest", "board")))
	src := &counting{Source: open()}
	report, err := prepare(t, src, list, batch.Options{}).Run(grouptest.Within(t))
	require.NoError(t, err)
	require.Equal(t, 20, report.Before)
	require.Less(t, src.read.Load(), int64(20), "one reading for each chunk")
	require.NotZero(t, src.read.Load())
	require.Zero(t, src.contended.Load())
	ran.requireOnce(t, 20)
}

// counting counts the calls on a source.
type counting struct {
	*fslock.Source
	contended, read atomic.Int64
}

func (c *counting) Contend(ctx context.Context, name string, claim source.Claim, p multilock.StalePolicy) (source.Contender, error) {
	c.contended.Add(1)
	return c.Source.Contend(ctx, name, claim, p)
}

func (c *counting) Result(ctx context.Context, name string) (multilock.Result, error) {
	c.read.Add(1)
	return c.Source.Result(ctx, name)
}

// Rule: attempts, chunks
func TestBatchFailures(t *testing.T) {
	open, ran := grouptest.Opener(t), newRuns()
	list := ran.jobs(4, func(_ context.Context, a batch.Attempt) error {
		switch {
		case a.Seq == 2:
			return &lockgroup.ExitError{Code: 130, Signal: "interrupt"}
		case a.Seq == 3 && a.Number < 3:
			return errWork
		case a.Seq == 4:
			return errWork
		}
		return nil
	})
	opt := batch.Options{Retries: 2}
	report, err := prepare(t, open(), list, opt).Run(grouptest.Within(t))
	require.ErrorIs(t, err, lockgroup.ErrNotDone)
	require.Equal(t, batch.Progress{Total: 4, Done: 2, Failed: 2, Ran: 10}, report.Progress)
	requireFailures := func(report batch.Report) {
		t.Helper()
		require.Len(t, report.Failures, 2)
		one, other := report.Failures[0], report.Failures[1]
		require.Equal(t, []any{"job002", 130, "interrupt", 3}, []any{one.Name, one.Exit, one.Signal, one.Attempt})
		require.Equal(t, []any{"job004", 1, "", "the disk is full"}, []any{other.Name, other.Exit, other.Signal, other.Why})
	}
	requireFailures(report)
	report, err = prepare(t, open(), list, opt).Run(grouptest.Within(t))
	require.ErrorIs(t, err, lockgroup.ErrNotDone)
	require.Zero(t, report.Ran)
	requireFailures(report)
}

// batchEnd is the result of a batch in the background.
type batchEnd struct {
	report batch.Report
	err    error
}

func running(t *testing.T, b *batch.Batch) <-chan batchEnd {
	t.Helper()
	return runningIn(grouptest.Within(t), b)
}

func runningIn(ctx context.Context, b *batch.Batch) <-chan batchEnd {
	end := make(chan batchEnd, 1)
	go func() {
		report, err := b.Run(ctx)
		end <- batchEnd{report, err}
	}()
	return end
}

// A dead holder's job is taken over, and counted.
// Rule: next-chunk
func TestBatchTakesOver(t *testing.T) {
	open, ran := grouptest.Opener(t), newRuns()
	src := open()
	dead := src.Self()
	dead.Start++ // the process that had this number before
	crashed := fslocktest.Open(t, fslock.Options{Base: src.Base(), Self: dead})
	lock, err := multilock.TryAcquire(t.Context(), crashed, "#jobs-2-2", multilock.Options{})
	require.NoError(t, err)
	require.NoError(t, lock.Detach())

	report, err := prepare(t, src, ran.jobs(3, succeeds), batch.Options{}).Run(grouptest.Within(t))
	require.NoError(t, err)
	require.Equal(t, batch.Progress{Total: 3, Done: 3, Ran: 3, TakenOver: 1}, report.Progress)
	ran.requireOnce(t, 3)
}

// A name is any bytes: its job does not run again although JSON has no such bytes.
// Rule: result
func TestBatchOfOddNames(t *testing.T) {
	open, ran := grouptest.Opener(t), newRuns()
	list := ran.jobs(9, succeeds)
	list[0].Name, list[8].Name = "\xff\xfe", "<&>\u2028"
	for _, want := range []int{9, 0} {
		report, err := prepare(t, open(), list, batch.Options{}).Run(grouptest.Within(t))
		require.NoError(t, err)
		require.Equal(t, want, report.Ran)
		require.NoError(t, open().DropProgressMap(t.Context()))
	}
}
