package cooklock_test

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/cooklock"
	"github.com/multilock/go/multilock/source"
)

func classic(t testing.TB, c *cell, opt cooklock.ClassicOptions) *cooklock.Classic {
	t.Helper()
	opt.Open = func(string) (cooklock.Register, error) { return c, nil }
	if opt.Period == 0 {
		opt.Period = period
	}
	src, err := cooklock.NewClassic(opt)
	require.NoError(t, err)
	return src
}

// The register holds what every implementation of the article understands: the
// time until which somebody is at work, in seconds.
func TestClassicPublishesATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell()
		a, b := classic(t, c, cooklock.ClassicOptions{}), classic(t, c, cooklock.ClassicOptions{})
		until := time.Now().Add(period)
		lock := must(t, a)
		require.Equal(t, strconv.FormatInt(until.Unix(), 10), string(c.values[1]))
		require.LessOrEqual(t, lock.Remaining(), period-3*time.Second)
		require.NoError(t, lock.Release(t.Context()))
		_, err := try(t, b)
		require.ErrorAs(t, err, new(*multilock.HeldError))
		require.Equal(t, source.StateHeld, look(t, b).State)
		time.Sleep(period - time.Nanosecond)
		_, err = try(t, b)
		require.ErrorIs(t, err, source.ErrHeld)
		time.Sleep(time.Nanosecond)
		require.Equal(t, source.StateFree, look(t, b).State)
		must(t, b)
		require.Equal(t, 2, c.swaps(), "nobody swaps while somebody is at work")
	})
}

func TestClassicSharesTheRegister(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell()
		until := time.Now().Add(period / 2)
		_, _, err := c.Swap(t.Context(), []byte(" "+strconv.FormatInt(until.Unix(), 10)+"\n"))
		require.NoError(t, err)
		src := classic(t, c, cooklock.ClassicOptions{})
		_, err = try(t, src)
		require.ErrorIs(t, err, source.ErrHeld)
		_, err = multilock.Acquire(t.Context(), src, "nightly", multilock.Options{})
		require.NoError(t, err)
		require.False(t, time.Now().Before(until))
	})
}

// The swap is what decides between two that saw a free kitchen.
func TestClassicComparesTheOldTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell()
		slow, quick := classic(t, c, cooklock.ClassicOptions{}), classic(t, c, cooklock.ClassicOptions{})
		c.before = func(op string) error {
			if op == swap {
				c.before = func(string) error { return nil }
				must(t, quick)
			}
			return nil
		}
		_, err := try(t, slow)
		require.ErrorIs(t, err, source.ErrHeld)
	})
}

// A swap that took longer than everybody relies on wins nothing.
func TestClassicSlowSwap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell()
		c.after = func(op string) error {
			if op == swap {
				time.Sleep(2 * time.Second)
			}
			return nil
		}
		_, err := try(t, classic(t, c, cooklock.ClassicOptions{}))
		require.ErrorIs(t, err, source.ErrHeld)
		c = newCell()
		c.after = func(op string) error {
			if op == swap {
				time.Sleep(2 * time.Second)
			}
			return nil
		}
		must(t, classic(t, c, cooklock.ClassicOptions{Delay: 10 * time.Second}))
	})
}

// Whoever publishes a longer time works for longer than others watch.
func TestClassicRefusesAnotherPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell()
		must(t, classic(t, c, cooklock.ClassicOptions{Options: cooklock.Options{Period: 2 * period}}))
		_, err := try(t, classic(t, c, cooklock.ClassicOptions{}))
		require.ErrorIs(t, err, source.ErrInvalid)
		require.ErrorContains(t, err, "give all hosts the same period")
	})
}

func TestClassicRefusesOtherValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell()
		must(t, c.chef(t, cooklock.Options{}))
		_, err := try(t, classic(t, c, cooklock.ClassicOptions{}))
		require.ErrorIs(t, err, source.ErrInvalid)
		require.Equal(t, 1, c.swaps())
		for _, value := range []string{"-5", "1e9", "99999999999999999999", "soon"} {
			_, _, err := c.Swap(t.Context(), []byte(value))
			require.NoError(t, err)
			_, err = try(t, classic(t, c, cooklock.ClassicOptions{}))
			require.ErrorIs(t, err, source.ErrInvalid, value)
		}
		_, _, err = c.Swap(t.Context(), []byte(""))
		require.NoError(t, err)
		must(t, classic(t, c, cooklock.ClassicOptions{}))
	})
}

func TestClassicOptionsAreChecked(t *testing.T) {
	base := cooklock.Options{Open: func(string) (cooklock.Register, error) { return newCell(), nil }}
	for _, change := range []func(*cooklock.ClassicOptions){
		func(o *cooklock.ClassicOptions) { o.Period = 3 * time.Second },
		func(o *cooklock.ClassicOptions) { o.Period = 10500 * time.Millisecond },
		func(o *cooklock.ClassicOptions) { o.Skew = -time.Second },
		func(o *cooklock.ClassicOptions) { o.Delay = time.Hour },
		func(o *cooklock.ClassicOptions) { o.Open = nil },
	} {
		opt := cooklock.ClassicOptions{Options: base}
		change(&opt)
		_, err := cooklock.NewClassic(opt)
		require.ErrorIs(t, err, source.ErrInvalid, "%+v", opt)
	}
	src, err := cooklock.NewClassic(cooklock.ClassicOptions{Options: base})
	require.NoError(t, err)
	require.Len(t, src.Promises(), len(source.Traits()))
	promise, ok := source.PromiseOf(src, source.TraitSafeSilence)
	require.True(t, ok)
	require.False(t, promise.Kept)
}

func TestClassicCannotBeBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := classic(t, newCell(), cooklock.ClassicOptions{})
		must(t, src)
		_, err := multilock.Break(t.Context(), src, "nightly", multilock.Want{Alive: true})
		require.ErrorIs(t, err, source.ErrUnsupported)
		require.ErrorContains(t, err, "ends by time alone")
	})
}
