package lockgroup_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
)

// What passes comes nowhere near generous.
const (
	generous = time.Minute
	tick     = 5 * time.Millisecond
)

func TestBatchDrain(t *testing.T) {
	open, ran := opener(t), newRuns()
	begun, end := make(chan struct{}), make(chan struct{})
	b := batch(t, open(), ran.jobs(5, func(ctx context.Context, _ lockgroup.BatchAttempt) error {
		close(begun)
		<-end
		return ctx.Err()
	}), lockgroup.BatchOptions{})
	go func() {
		<-begun
		b.Drain()
		close(end)
	}()
	report, err := b.Run(within(t))
	require.ErrorIs(t, err, lockgroup.ErrDrained)
	require.Equal(t, lockgroup.BatchProgress{Total: 5, Done: 1, Ran: 1}, report.BatchProgress)
}

// A job that has failed is not tried again when no more jobs are taken; another
// start may.
func TestBatchDrainedBetweenAttempts(t *testing.T) {
	open, ran := opener(t), newRuns()
	var b *lockgroup.Batch
	b = batch(t, open(), ran.jobs(1, func(context.Context, lockgroup.BatchAttempt) error {
		b.Drain()
		return errWork
	}), lockgroup.BatchOptions{Retries: 5})
	report, err := b.Run(within(t))
	require.ErrorIs(t, err, lockgroup.ErrDrained)
	require.Equal(t, lockgroup.BatchProgress{Total: 1, Ran: 1}, report.BatchProgress)
	require.Equal(t, 1, ran.of("job001"))
}

// Why a batch has ended is what came first.
func TestBatchDrainedAndHalted(t *testing.T) {
	open, ran := opener(t), newRuns()
	var b *lockgroup.Batch
	b = batch(t, open(), ran.jobs(2, func(context.Context, lockgroup.BatchAttempt) error {
		b.Drain()
		return errWork
	}), lockgroup.BatchOptions{Halt: lockgroup.Halt{When: lockgroup.HaltSoon, Number: 1}})
	report, err := b.Run(within(t))
	require.ErrorIs(t, err, lockgroup.ErrDrained)
	require.NotErrorAs(t, err, new(*lockgroup.HaltError))
	require.Equal(t, lockgroup.BatchProgress{Total: 2, Failed: 1, Ran: 1}, report.BatchProgress)
}

func TestBatchDrainedBefore(t *testing.T) {
	open, ran := opener(t), newRuns()
	b := batch(t, open(), ran.jobs(5, succeeds), lockgroup.BatchOptions{})
	b.Drain()
	report, err := b.Run(within(t))
	require.ErrorIs(t, err, lockgroup.ErrDrained)
	require.Zero(t, report.Ran)
}

// What was interrupted has not failed, and is run again.
func TestBatchInterrupted(t *testing.T) {
	open, ran := opener(t), newRuns()
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	first := batch(t, open(), ran.jobs(2, func(ctx context.Context, _ lockgroup.BatchAttempt) error {
		cancel(stop)
		<-ctx.Done()
		return ctx.Err()
	}), lockgroup.BatchOptions{Workers: 2})
	report, err := first.Run(ctx)
	require.ErrorIs(t, err, stop)
	require.Equal(t, lockgroup.BatchProgress{Total: 2}, report.BatchProgress)

	report, err = batch(t, open(), ran.jobs(2, succeeds), lockgroup.BatchOptions{}).Run(within(t))
	require.NoError(t, err)
	require.Equal(t, 2, report.Ran)
}

func TestBatchHaltSoon(t *testing.T) {
	open, ran := opener(t), newRuns()
	opt := lockgroup.BatchOptions{Halt: lockgroup.Halt{When: lockgroup.HaltSoon, What: lockgroup.HaltFail, Number: 2}}
	report, err := batch(t, open(), ran.jobs(9, func(context.Context, lockgroup.BatchAttempt) error { return errWork }), opt).Run(within(t))
	var halted *lockgroup.HaltError
	require.ErrorAs(t, err, &halted)
	require.Equal(t, 2, halted.Failed)
	require.Equal(t, lockgroup.BatchProgress{Total: 9, Failed: 2, Ran: 2}, report.BatchProgress)

	report, err = batch(t, open(), ran.jobs(9, succeeds), opt).Run(within(t))
	require.ErrorAs(t, err, &halted, "what failed before counts")
	require.Zero(t, report.Ran)
}

func TestBatchHaltNow(t *testing.T) {
	open, ran := opener(t), newRuns()
	for _, halt := range []lockgroup.Halt{{What: lockgroup.HaltSuccess, Number: 1}, {What: lockgroup.HaltDone, Percent: 30}} {
		halt.When = lockgroup.HaltNow
		src, err := fslock.Open(fslock.Options{Base: open().Base(), Group: fmt.Sprint("group", halt.What)})
		require.NoError(t, err)
		other := make(chan struct{})
		report, err := batch(t, src, ran.jobs(3, func(ctx context.Context, a lockgroup.BatchAttempt) error {
			if a.Seq == 1 {
				<-other
				return nil
			}
			if a.Seq == 2 {
				close(other)
			}
			<-ctx.Done()
			return ctx.Err()
		}), lockgroup.BatchOptions{Workers: 3, Halt: halt}).Run(within(t))
		require.ErrorAs(t, err, new(*lockgroup.HaltError))
		require.Equal(t, lockgroup.BatchProgress{Total: 3, Done: 1, Ran: 1}, report.BatchProgress)
		require.NoError(t, src.Close())
	}
}

// A job whose lock is broken is told so, and what it did is not recorded.
func TestBatchLosesLock(t *testing.T) {
	open, ran := opener(t), newRuns()
	src := open()
	report, err := batch(t, src, ran.jobs(1, func(ctx context.Context, a lockgroup.BatchAttempt) error {
		if ran.of(a.Name) > 1 {
			return nil
		}
		if _, err := multilock.Break(ctx, src, a.Name, multilock.Want{Alive: true}); err != nil {
			t.Error(err)
		}
		if err := a.Lock.Verify(ctx); !errors.Is(err, multilock.ErrLost) {
			t.Error(err)
		}
		<-ctx.Done()
		return ctx.Err()
	}), lockgroup.BatchOptions{}).Run(within(t))
	require.NoError(t, err)
	require.Equal(t, 2, ran.of("job001"))
	require.Equal(t, 1, report.Ran)
	last, err := src.Result(t.Context(), "job001")
	require.NoError(t, err)
	require.Equal(t, 1, last.Attempt)
}

// The lock of a job that cannot be ended is not given to others.
func TestBatchLingering(t *testing.T) {
	open, ran := opener(t), newRuns()
	src := open()
	b := batch(t, src, ran.jobs(1, func(context.Context, lockgroup.BatchAttempt) error { return lockgroup.ErrLingering }), lockgroup.BatchOptions{})
	end := running(t, b)
	require.Eventually(t, func() bool { return b.Progress().Elsewhere == 1 }, generous, tick)
	b.Drain()
	require.ErrorIs(t, (<-end).err, lockgroup.ErrDrained)
	seen, err := multilock.Inspect(t.Context(), src, "job001", multilock.Patience{})
	require.NoError(t, err)
	require.Equal(t, multilock.StateHeld, seen.State)
	_, err = src.Result(t.Context(), "job001")
	require.ErrorIs(t, err, multilock.ErrNoResult)
}

func TestBatchRefusesAnotherList(t *testing.T) {
	open, ran := opener(t), newRuns()
	list := ran.jobs(3, succeeds)
	_, err := batch(t, open(), list, lockgroup.BatchOptions{}).Run(within(t))
	require.NoError(t, err)
	other := ran.jobs(3, succeeds)
	other[1].Command = "make\nall"
	for _, c := range []struct {
		list         []lockgroup.Job
		line         int
		ours, theirs string
	}{
		{list[:2], 3, "", "job003\tmake"},
		{ran.jobs(4, succeeds), 4, "job004\tmake", ""},
		{other, 2, `job002` + "\t" + `make\nall`, "job002\tmake"},
	} {
		_, err := batch(t, open(), c.list, lockgroup.BatchOptions{}).Run(within(t))
		var differs *lockgroup.ManifestError
		require.ErrorAs(t, err, &differs)
		require.Equal(t, lockgroup.ManifestError{Line: c.line, Ours: c.ours, Theirs: c.theirs}, *differs)
	}
	require.NoError(t, open().Retract(t.Context()))
	_, err = batch(t, open(), other, lockgroup.BatchOptions{}).Run(within(t))
	require.NoError(t, err)
}

func TestBatchInvalid(t *testing.T) {
	src, list := opener(t)(), newRuns().jobs(2, succeeds)
	twice := []lockgroup.Job{list[0], list[0]}
	for name, c := range map[string]struct {
		list []lockgroup.Job
		opt  lockgroup.BatchOptions
	}{
		"a name twice":          {twice, lockgroup.BatchOptions{}},
		"negative workers":      {list, lockgroup.BatchOptions{Workers: -1}},
		"negative retries":      {list, lockgroup.BatchOptions{Retries: -1}},
		"negative poll":         {list, lockgroup.BatchOptions{Options: multilock.Options{Poll: -1}}},
		"halt without a number": {list, lockgroup.BatchOptions{Halt: lockgroup.Halt{When: lockgroup.HaltNow}}},
		"halt with both":        {list, lockgroup.BatchOptions{Halt: lockgroup.Halt{When: lockgroup.HaltNow, Number: 1, Percent: 1}}},
		"halt beyond all":       {list, lockgroup.BatchOptions{Halt: lockgroup.Halt{When: lockgroup.HaltSoon, Percent: 101}}},
	} {
		_, err := lockgroup.NewBatch(src, c.list, c.opt)
		require.ErrorIs(t, err, multilock.ErrInvalid, name)
	}
	_, err := lockgroup.NewBatch(newPlace(), list, lockgroup.BatchOptions{})
	require.ErrorIs(t, err, multilock.ErrUnsupported)
}
