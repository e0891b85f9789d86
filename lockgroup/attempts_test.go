package lockgroup_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/lockgroup/internal/grouptest"
	"github.com/multilock/go/multilock"
)

// take acquires the lock x for attempts.
func take(t *testing.T, src multilock.Source) *multilock.Lock {
	t.Helper()
	lock, err := multilock.TryAcquire(t.Context(), src, "x", multilock.Options{User: "ada", Command: "make"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = lock.Release(context.Background()) })
	return lock
}

// ending is work whose attempts return these exit codes; -1 is an error.
func ending(made *[]lockgroup.Attempt, codes ...int) func(context.Context, lockgroup.Attempt) (multilock.Result, error) {
	return func(_ context.Context, a lockgroup.Attempt) (multilock.Result, error) {
		*made = append(*made, a)
		code := codes[len(*made)-1]
		if code < 0 {
			return multilock.Result{}, errWork
		}
		return multilock.Result{Exit: code}, nil
	}
}

// Rule: attempts
func TestEachAttemptKnowsTheOneBefore(t *testing.T) {
	src := grouptest.Opener(t)()
	var made []lockgroup.Attempt
	var told []int
	lock := take(t, src)
	out, err := lockgroup.Attempts{
		Source: src, Plan: &lockgroup.Plan{Retries: 5}, Work: ending(&made, 3, 4, 0),
		Recorded: func(_ context.Context, r multilock.Result) {
			on, err := src.Result(t.Context(), "x")
			require.NoError(t, err)
			require.Equal(t, r.Attempt, on.Attempt, "it is recorded by now")
			told = append(told, r.Exit)
		},
	}.Run(t.Context(), lock)
	require.NoError(t, err)
	require.Equal(t, lockgroup.StepDone, out.Step)
	require.Equal(t, 3, out.Ran)
	require.Equal(t, []int{3, 4, 0}, told)
	require.Equal(t, "ada", out.Last.User)
	require.Equal(t, "make", out.Last.Command)
	require.Equal(t, lock.Record().Token, out.Last.Token)
	require.False(t, out.Last.Start.IsZero())
	for i, a := range made {
		require.Equal(t, i == 0, a.First)
		require.Equal(t, i+1, a.Attempt)
		require.Same(t, lock, a.Lock)
	}
	require.Nil(t, made[0].Last)
	require.Equal(t, 4, made[2].Last.Exit)

	out, err = lockgroup.Attempts{Source: src, Plan: &lockgroup.Plan{}, Work: ending(&made)}.Run(t.Context(), lock)
	require.NoError(t, err)
	require.Zero(t, out.Ran)
	require.Equal(t, lockgroup.StepDone, out.Step)
}

// A result that is not recorded, and all further attempts, are left to the next run.
// Rule: attempts
func TestAttemptWithAnErrorIsTheLast(t *testing.T) {
	src := grouptest.Opener(t)()
	var made []lockgroup.Attempt
	lock := take(t, src)
	out, err := lockgroup.Attempts{Source: src, Plan: &lockgroup.Plan{Retries: 5}, Work: ending(&made, 3, -1)}.Run(t.Context(), lock)
	require.ErrorIs(t, err, errWork)
	require.Equal(t, lockgroup.StepRun, out.Step)
	require.Equal(t, 1, out.Ran)
	require.Equal(t, 3, out.Last.Exit)
	require.Len(t, made, 2)

	recorded, err := src.Result(t.Context(), "x")
	require.NoError(t, err)
	require.Equal(t, 1, recorded.Attempt)
	_, err = lockgroup.Attempts{Source: src, Plan: &lockgroup.Plan{Retries: 5}, Work: ending(&made, 0, 0, 0)}.Run(t.Context(), lock)
	require.NoError(t, err)
	require.Equal(t, 2, made[2].Attempt)
	require.True(t, made[2].First, "under this lock, as far as this call knows")
}

// Rule: none (options)
func TestAttemptWithoutAPlan(t *testing.T) {
	src := grouptest.Opener(t)()
	var made []lockgroup.Attempt
	lock := take(t, src)
	require.NoError(t, lock.Commit(t.Context(), multilock.Result{By: lock.Record().Holder.Identity, Attempt: 1, Final: true}))
	out, err := lockgroup.Attempts{Source: src, Work: ending(&made, 3)}.Run(t.Context(), lock)
	require.NoError(t, err)
	require.Equal(t, lockgroup.Outcome{Step: lockgroup.StepDone, Ran: 1}, out)
	recorded, err := src.Result(t.Context(), "x")
	require.NoError(t, err)
	require.True(t, recorded.OK(), "what was recorded before")
	out, err = lockgroup.Attempts{Source: src}.Peek(t.Context(), "x")
	require.NoError(t, err)
	require.Zero(t, out)
}

// A job that has ended does not run again under a lock that could not record its result.
// Rule: attempts
func TestAttemptThatCannotBeRecorded(t *testing.T) {
	for _, why := range []error{multilock.ErrUnsure, multilock.ErrLost, errors.New("no space left on device")} {
		src := grouptest.NewVenue()
		src.Fail("commit", why)
		var made []lockgroup.Attempt
		out, err := lockgroup.Attempts{Source: src, Plan: &lockgroup.Plan{Retries: 5}, Work: ending(&made, 3, 0)}.Run(t.Context(), take(t, src))
		var unrecorded *lockgroup.UnrecordedError
		require.ErrorAs(t, err, &unrecorded)
		require.ErrorIs(t, err, why)
		require.Equal(t, 3, unrecorded.Result.Exit)
		require.Equal(t, "x", unrecorded.Result.Name)
		require.Zero(t, out)
		require.Len(t, made, 1)
	}
}

// A success is recorded even while everything shuts down.
// Rule: attempts
func TestSuccessIsRecordedAfterTheEndOfTheContext(t *testing.T) {
	src, plan := grouptest.NewVenue(), &lockgroup.Plan{}
	ctx, cancel := context.WithCancel(t.Context())
	out, err := lockgroup.Attempts{Source: src, Plan: plan, Work: func(context.Context, lockgroup.Attempt) (multilock.Result, error) {
		cancel()
		return multilock.Result{}, nil
	}}.Run(ctx, take(t, src))
	require.NoError(t, err)
	require.Equal(t, 1, out.Ran)
}

// Rule: readers
func TestPeek(t *testing.T) {
	plan := &lockgroup.Plan{Retries: 1}
	for name, c := range map[string]struct {
		last *multilock.Result
		step lockgroup.Step
	}{
		"nothing":         {nil, lockgroup.StepRun},
		"a success":       {&multilock.Result{Name: "x"}, lockgroup.StepDone},
		"the last":        {&multilock.Result{Name: "x", Exit: 1, Attempt: 2, Final: true}, lockgroup.StepFailed},
		"one may follow":  {&multilock.Result{Name: "x", Exit: 1, Attempt: 1}, lockgroup.StepRun},
		"nobody knows it": {&multilock.Result{Name: "x", Foreign: "torn"}, lockgroup.StepRun},
	} {
		src := grouptest.NewVenue()
		if c.last != nil {
			src.Commit(*c.last)
		}
		out, err := lockgroup.Attempts{Source: src, Plan: plan}.Peek(t.Context(), "x")
		require.NoError(t, err, name)
		require.Equal(t, c.step, out.Step, name)
	}
	src := grouptest.NewVenue()
	src.Commit(multilock.Result{Name: "x"})
	src.Fail("result", errWork)
	_, err := lockgroup.Attempts{Source: src, Plan: plan}.Peek(t.Context(), "x")
	require.ErrorIs(t, err, errWork)
}

// Rule: attempts
func TestWhileHeld(t *testing.T) {
	stop := errors.New("stop")
	for name, c := range map[string]struct {
		err, cause error // of the work, and of the end of its context before it
		result     multilock.Result
		unrecorded error
	}{
		"success":              {},
		"success all the same": {cause: stop},
		"failure":              {err: errWork, result: multilock.Result{Exit: 1, Why: "the disk is full"}},
		"an exit code":         {err: fmt.Errorf("it: %w", &lockgroup.ExitError{Code: 3, Signal: "killed", Why: "so"}), result: multilock.Result{Exit: 3, Signal: "killed", Why: "so"}},
		"lost output":          {err: &lockgroup.ExitError{Output: "full"}, result: multilock.Result{Output: "full"}},
		"interrupted":          {err: errWork, cause: stop, unrecorded: stop},
		"not run":              {err: errors.Join(lockgroup.ErrNotRun, errWork), unrecorded: errWork},
		"lives on":             {err: lockgroup.ErrLingering, cause: stop, unrecorded: lockgroup.ErrLingering},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		result, err := lockgroup.WhileHeld(ctx, take(t, grouptest.NewVenue()), func(ctx context.Context) error {
			if c.cause != nil {
				cancel(c.cause)
				<-ctx.Done()
			}
			return c.err
		})
		require.ErrorIs(t, err, c.unrecorded, name)
		require.Equal(t, c.result, result, name)
		cancel(nil)
	}
}

// Rule: validity, loss
func TestWhileHeldEndsWithTheLock(t *testing.T) {
	src := grouptest.Opener(t)()
	lock, err := multilock.TryAcquire(t.Context(), src, "x", multilock.Options{TTL: time.Second})
	require.NoError(t, err)
	_, err = lockgroup.WhileHeld(t.Context(), lock, func(ctx context.Context) error {
		_, err := multilock.Break(ctx, src, "x", multilock.BreakOptions{Alive: true})
		require.NoError(t, err)
		<-ctx.Done()
		return errWork
	})
	require.ErrorIs(t, err, multilock.ErrLost)
}
