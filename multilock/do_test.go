package multilock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

var errWork = errors.New("the disk is full")

// Rule: release
func TestDoHoldsTheLockAndReleasesIt(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		var ended <-chan struct{}
		err := multilock.Do(t.Context(), f, "nightly", multilock.Options{}, func(ctx context.Context) error {
			ended = ctx.Done()
			require.NoError(t, ctx.Err())
			require.Zero(t, f.count(release))
			return nil
		})
		require.NoError(t, err)
		<-ended
		require.Equal(t, 1, f.count(release))
	})
}

// Rule: I4
func TestDoWithoutTheLockDoesNotWork(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.on(try, fails(errServer))
		err := multilock.Do(t.Context(), f, "nightly", multilock.Options{}, func(context.Context) error {
			t.Error("it worked without the lock")
			return nil
		})
		require.ErrorIs(t, err, errServer)
	})
}

// Rule: none (errors)
func TestDoJoinsTheErrors(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.on(release, fails(errServer))
		err := multilock.Do(t.Context(), f, "nightly", multilock.Options{}, func(context.Context) error { return errWork })
		require.ErrorIs(t, err, errWork)
		require.ErrorIs(t, err, errServer)
		require.ErrorIs(t, err, multilock.ErrUnsure)
	})
}

// Rule: validity, loss
func TestDoCancelsTheWorkWhenTheLockIsLost(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.on(renew, fails(multilock.ErrLost))
		f.on(release, fails(multilock.ErrLost))
		err := multilock.Do(t.Context(), f, "nightly", multilock.Options{}, func(ctx context.Context) error {
			<-ctx.Done()
			require.ErrorIs(t, context.Cause(ctx), multilock.ErrLost)
			return errWork
		})
		require.ErrorIs(t, err, errWork)
		var lost *multilock.LostError
		require.ErrorAs(t, err, &lost)
	})
}

// Rule: release
func TestDoReleasesAfterItsContextEnded(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		ctx, cancel := context.WithCancel(t.Context())
		err := multilock.Do(ctx, f, "nightly", multilock.Options{}, func(ctx context.Context) error {
			cancel()
			<-ctx.Done()
			return context.Cause(ctx)
		})
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, multilock.ErrUnsure)
		require.Equal(t, 1, f.count(release))
	})
}

// A panic that is recovered must not leave a lock that is renewed forever.
// Rule: release
func TestDoReleasesWhenTheWorkPanics(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		require.PanicsWithValue(t, "no more", func() {
			_ = multilock.Do(t.Context(), f, "nightly", multilock.Options{}, func(context.Context) error { panic("no more") })
		})
		require.Equal(t, 1, f.count(release))
	})
}

// Rule: none (Inspect)
func TestInspectLooksOnce(t *testing.T) {
	f := newFake()
	f.show(node7(multilock.StateSuspect))
	seen, err := multilock.Inspect(t.Context(), f, "nightly", multilock.StalePolicy{})
	require.NoError(t, err)
	require.Equal(t, multilock.StateSuspect, seen.State)
	require.Equal(t, []step{look, closes}, f.steps())

	f.on(look, fails(errServer))
	_, err = multilock.Inspect(t.Context(), f, "nightly", multilock.StalePolicy{})
	require.ErrorIs(t, err, errServer)
	require.Equal(t, 2, f.count(closes))
}

// Rule: break
func TestBreak(t *testing.T) {
	held, suspect, dead := node7(multilock.StateHeld), node7(multilock.StateSuspect), node7(multilock.StateDead)
	tests := []struct {
		name  string
		looks []multilock.Observation
		want  multilock.BreakOptions
		err   error
		steps []step
	}{
		{"free", []multilock.Observation{{State: multilock.StateFree}}, multilock.BreakOptions{}, multilock.ErrFree, []step{look, closes}},
		{"held", []multilock.Observation{held}, multilock.BreakOptions{}, multilock.ErrHeld, []step{look, closes}},
		{"dead", []multilock.Observation{dead}, multilock.BreakOptions{}, nil, []step{look, breaks, closes}},
		{"suspect, then dead", []multilock.Observation{suspect, suspect, dead}, multilock.BreakOptions{}, nil, []step{look, look, look, breaks, closes}},
		{"suspect, then held", []multilock.Observation{suspect, held}, multilock.BreakOptions{}, multilock.ErrHeld, []step{look, look, closes}},
		{"suspect, then free", []multilock.Observation{suspect, {State: multilock.StateFree}}, multilock.BreakOptions{}, multilock.ErrFree, []step{look, look, closes}},
		{"held, by force", []multilock.Observation{held}, multilock.BreakOptions{Alive: true}, nil, []step{look, force, closes}},
		{"that token", []multilock.Observation{dead}, multilock.BreakOptions{Token: "seven"}, nil, []step{look, breaks, closes}},
		{"another token", []multilock.Observation{dead}, multilock.BreakOptions{Token: "six"}, multilock.ErrHeld, []step{look, closes}},
		{"another token, by force", []multilock.Observation{held}, multilock.BreakOptions{Token: "six", Alive: true}, multilock.ErrHeld, []step{look, closes}},
		{"no token", []multilock.Observation{{State: multilock.StateDead}}, multilock.BreakOptions{Token: "six"}, multilock.ErrHeld, []step{look, closes}},
	}
	for _, tt := range tests {
		runBubble(t, tt.name, func(t *testing.T, f *fake) {
			f.on(look, f.showing(tt.looks...))
			seen, err := multilock.Break(t.Context(), f, "nightly", tt.want)
			require.ErrorIs(t, err, tt.err)
			require.Equal(t, tt.looks[len(tt.looks)-1].State, seen.State)
			require.Equal(t, tt.steps, f.steps())
			if errors.Is(tt.err, multilock.ErrHeld) {
				require.ErrorAs(t, err, new(*multilock.HeldError))
			}
		})
	}
}

// Rule: break, I2
func TestBreakOfALockThatCameBackToLife(t *testing.T) {
	f := newFake()
	f.show(node7(multilock.StateDead))
	f.on(breaks, fails(multilock.ErrHeld))
	seen, err := multilock.Break(t.Context(), f, "nightly", multilock.BreakOptions{})
	var held *multilock.HeldError
	require.ErrorAs(t, err, &held)
	require.Contains(t, err.Error(), "node7")
	require.Equal(t, multilock.StateHeld, seen.State)
}

// Rule: none (time limits)
func TestBreakStopsWatchingWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.show(node7(multilock.StateSuspect))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := multilock.Break(ctx, f, "nightly", multilock.BreakOptions{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		synctest.Wait()
		require.Equal(t, 1, f.count(closes))
		require.Zero(t, f.count(breaks))
	})
}

// Rule: none (time limits)
func TestInspectAndBreakGiveUpWhileTheSourceHangs(t *testing.T) {
	calls := map[string]func(context.Context, *fake) error{
		"inspect": func(ctx context.Context, f *fake) error {
			_, err := multilock.Inspect(ctx, f, "nightly", multilock.StalePolicy{})
			return err
		},
		"break": func(ctx context.Context, f *fake) error {
			_, err := multilock.Break(ctx, f, "nightly", multilock.BreakOptions{})
			return err
		},
	}
	for name, call := range calls {
		runBubble(t, name, func(t *testing.T, f *fake) {
			until := make(chan struct{})
			f.on(look, hangs(until, nil))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			require.ErrorIs(t, call(ctx, f), context.DeadlineExceeded)
			close(until)
			synctest.Wait()
			require.Equal(t, 1, f.count(closes))
		})
	}
}

// blind is a source that cannot be inspected.
type blind struct{ *fake }

func (blind) Observe(context.Context, string, multilock.StalePolicy) (source.Observer, error) {
	return nil, errServer
}

// Rule: none (errors)
func TestInspectAndBreakOfASourceThatCannotBeLookedAt(t *testing.T) {
	_, err := multilock.Inspect(t.Context(), blind{newFake()}, "nightly", multilock.StalePolicy{})
	require.ErrorIs(t, err, errServer)
	_, err = multilock.Break(t.Context(), blind{newFake()}, "nightly", multilock.BreakOptions{})
	require.ErrorIs(t, err, errServer)
}
