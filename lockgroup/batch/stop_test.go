package batch_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/lockgroup/batch"
	"github.com/multilock/go/lockgroup/internal/grouptest"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/fslock/fslocktest"
)

// Timeouts far above any normal duration.
const (
	generous = time.Minute
	tick     = 5 * time.Millisecond
)

// Rule: chunks
func TestBatchDrain(t *testing.T) {
	open, ran := grouptest.Opener(t), newRuns()
	begun, end := make(chan struct{}), make(chan struct{})
	b := prepare(t, open(), ran.jobs(5, func(ctx context.Context, _ batch.Attempt) error {
		close(begun)
		<-end
		return ctx.Err()
	}), batch.Options{})
	go func() {
		<-begun
		b.Drain()
		close(end)
	}()
	report, err := b.Run(grouptest.Within(t))
	require.ErrorIs(t, err, batch.ErrDrained)
	require.Equal(t, batch.Progress{Total: 5, Done: 1, Ran: 1}, report.Progress)
}

// A failed job is not retried when no more jobs are taken; a later run may retry it.
// Rule: attempts
func TestBatchDrainedBetweenAttempts(t *testing.T) {
	open, ran := grouptest.Opener(t), newRuns()
	var b *batch.Batch
	b = prepare(t, open(), ran.jobs(1, func(context.Context, batch.Attempt) error {
		b.Drain()
		return errWork
	}), batch.Options{Retries: 5})
	report, err := b.Run(grouptest.Within(t))
	require.ErrorIs(t, err, batch.ErrDrained)
	require.Equal(t, batch.Progress{Total: 1, Ran: 1}, report.Progress)
	require.Equal(t, 1, ran.of("job001"))
}

// A batch reports the first cause of its end.
// Rule: none (reports)
func TestBatchDrainedAndHalted(t *testing.T) {
	open, ran := grouptest.Opener(t), newRuns()
	var b *batch.Batch
	b = prepare(t, open(), ran.jobs(2, func(context.Context, batch.Attempt) error {
		b.Drain()
		return errWork
	}), batch.Options{Halt: batch.Halt{When: batch.HaltSoon, Number: 1}})
	report, err := b.Run(grouptest.Within(t))
	require.ErrorIs(t, err, batch.ErrDrained)
	require.NotErrorAs(t, err, new(*batch.HaltError))
	require.Equal(t, batch.Progress{Total: 2, Failed: 1, Ran: 1}, report.Progress)
}

// Rule: none (reports)
func TestBatchDrainedBefore(t *testing.T) {
	open, ran := grouptest.Opener(t), newRuns()
	b := prepare(t, open(), ran.jobs(5, succeeds), batch.Options{})
	b.Drain()
	report, err := b.Run(grouptest.Within(t))
	require.ErrorIs(t, err, batch.ErrDrained)
	require.Zero(t, report.Ran)
}

// An interrupted job has not failed, and runs again.
// Rule: attempts
func TestBatchInterrupted(t *testing.T) {
	open, ran := grouptest.Opener(t), newRuns()
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	first := prepare(t, open(), ran.jobs(2, func(ctx context.Context, _ batch.Attempt) error {
		cancel(stop)
		<-ctx.Done()
		return ctx.Err()
	}), batch.Options{Workers: 2})
	report, err := first.Run(ctx)
	require.ErrorIs(t, err, stop)
	require.Equal(t, batch.Progress{Total: 2}, report.Progress)

	report, err = prepare(t, open(), ran.jobs(2, succeeds), batch.Options{}).Run(grouptest.Within(t))
	require.NoError(t, err)
	require.Equal(t, 2, report.Ran)
}

// Rule: none (--halt)
func TestBatchHaltSoon(t *testing.T) {
	open, ran := grouptest.Opener(t), newRuns()
	opt := batch.Options{Halt: batch.Halt{When: batch.HaltSoon, What: batch.HaltFail, Number: 2}}
	report, err := prepare(t, open(), ran.jobs(9, func(context.Context, batch.Attempt) error { return errWork }), opt).Run(grouptest.Within(t))
	var halted *batch.HaltError
	require.ErrorAs(t, err, &halted)
	require.Equal(t, 2, halted.Failed)
	require.Equal(t, batch.Progress{Total: 9, Failed: 2, Ran: 2}, report.Progress)

	report, err = prepare(t, open(), ran.jobs(9, succeeds), opt).Run(grouptest.Within(t))
	require.ErrorAs(t, err, &halted, "what failed before counts")
	require.Zero(t, report.Ran)
}

// Rule: attempts
func TestBatchHaltNow(t *testing.T) {
	open, ran := grouptest.Opener(t), newRuns()
	for _, halt := range []batch.Halt{{What: batch.HaltSuccess, Number: 1}, {What: batch.HaltDone, Percent: 30}} {
		halt.When = batch.HaltNow
		src := fslocktest.Open(t, fslock.Options{Base: open().Base(), Group: fmt.Sprint("group", halt.What)})
		other := make(chan struct{})
		report, err := prepare(t, src, ran.jobs(3, func(ctx context.Context, a batch.Attempt) error {
			if a.Seq == 1 {
				<-other
				return nil
			}
			if a.Seq == 2 {
				close(other)
			}
			<-ctx.Done()
			return ctx.Err()
		}), batch.Options{Workers: 3, Halt: halt}).Run(grouptest.Within(t))
		require.ErrorAs(t, err, new(*batch.HaltError))
		require.Equal(t, batch.Progress{Total: 3, Done: 1, Ran: 1}, report.Progress)
	}
}

// The context of a job whose lock is broken ends, and the job's result is not recorded.
// Rule: loss, I7
func TestBatchLosesLock(t *testing.T) {
	open, ran := grouptest.Opener(t), newRuns()
	src := open()
	report, err := prepare(t, src, ran.jobs(1, func(ctx context.Context, a batch.Attempt) error {
		if ran.of(a.Name) > 1 {
			return nil
		}
		if _, err := multilock.Break(ctx, src, a.Lock.Record().Name, multilock.BreakOptions{Alive: true}); err != nil {
			t.Error(err)
		}
		if err := a.Lock.Verify(ctx); !errors.Is(err, multilock.ErrLost) {
			t.Error(err)
		}
		<-ctx.Done()
		return ctx.Err()
	}), batch.Options{}).Run(grouptest.Within(t))
	require.NoError(t, err)
	require.Equal(t, 2, ran.of("job001"))
	require.Equal(t, 1, report.Ran)
	last, err := src.Result(t.Context(), "#jobs-1-1")
	require.NoError(t, err)
	require.Equal(t, 1, last.Chunk.Jobs[0].Attempt)
}

// The lock of a job that cannot be ended is not released.
// Rule: chunks
func TestBatchLingering(t *testing.T) {
	open, ran := grouptest.Opener(t), newRuns()
	src := open()
	b := prepare(t, src, ran.jobs(1, func(context.Context, batch.Attempt) error { return lockgroup.ErrLingering }), batch.Options{})
	end := running(t, b)
	require.Eventually(t, func() bool { return b.Progress().Elsewhere == 1 }, generous, tick)
	b.Drain()
	require.ErrorIs(t, (<-end).err, batch.ErrDrained)
	seen, err := multilock.Inspect(t.Context(), src, "#jobs-1-1", multilock.StalePolicy{})
	require.NoError(t, err)
	require.Equal(t, multilock.StateHeld, seen.State)
	_, err = src.Result(t.Context(), "#jobs-1-1")
	require.ErrorIs(t, err, multilock.ErrNoResult)
}

// Rule: manifest
func TestBatchRefusesAnotherList(t *testing.T) {
	open, ran := grouptest.Opener(t), newRuns()
	list := ran.jobs(3, succeeds)
	_, err := prepare(t, open(), list, batch.Options{}).Run(grouptest.Within(t))
	require.NoError(t, err)
	other := ran.jobs(3, succeeds)
	other[1].Command = "make\nall"
	for _, c := range []struct {
		list         []batch.Job
		line         int
		ours, theirs string
	}{
		{list[:2], 3, "", "job003\tmake"},
		{ran.jobs(4, succeeds), 4, "job004\tmake", ""},
		{other, 2, `job002` + "\t" + `make\nall`, "job002\tmake"},
	} {
		_, err := prepare(t, open(), c.list, batch.Options{}).Run(grouptest.Within(t))
		var differs *batch.ManifestError
		require.ErrorAs(t, err, &differs)
		require.Equal(t, batch.ManifestError{Line: c.line, Ours: c.ours, Theirs: c.theirs}, *differs)
	}
	require.NoError(t, open().Retract(t.Context()))
	_, err = prepare(t, open(), other, batch.Options{}).Run(grouptest.Within(t))
	require.NoError(t, err)
}

// Rule: none (options)
func TestBatchInvalid(t *testing.T) {
	src, list := grouptest.Opener(t)(), newRuns().jobs(2, succeeds)
	twice := []batch.Job{list[0], list[0]}
	for name, c := range map[string]struct {
		list []batch.Job
		opt  batch.Options
	}{
		"a name twice":          {twice, batch.Options{}},
		"negative workers":      {list, batch.Options{Workers: -1}},
		"negative retries":      {list, batch.Options{Retries: -1}},
		"negative poll":         {list, batch.Options{Poll: -1}},
		"halt without a number": {list, batch.Options{Halt: batch.Halt{When: batch.HaltNow}}},
		"halt with both":        {list, batch.Options{Halt: batch.Halt{When: batch.HaltNow, Number: 1, Percent: 1}}},
		"halt beyond all":       {list, batch.Options{Halt: batch.Halt{When: batch.HaltSoon, Percent: 101}}},
	} {
		_, err := batch.New(src, c.list, c.opt)
		require.ErrorIs(t, err, multilock.ErrInvalid, name)
	}
	_, err := batch.New(grouptest.NewPlace(), list, batch.Options{})
	require.ErrorIs(t, err, multilock.ErrUnsupported)
}
