package cooklock_test

import (
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/cooklock"
	"github.com/multilock/go/multilock/source"
)

// period is long, because the age of a lock also counts real time, which advances a little in a
// bubble, too.
const period = 10 * time.Minute

func TestNobodyIsWaitedForInTheBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell()
		start := time.Now()
		lock := must(t, c.chef(t, cooklock.Options{}))
		require.Zero(t, time.Since(start))
		require.LessOrEqual(t, lock.Remaining(), period-period/5)
	})
}

// A waiter acquires the lock a period after its first look, and not a moment earlier.
func TestWatchLastsForAPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell()
		must(t, c.chef(t, cooklock.Options{}))
		time.Sleep(period / 2)
		start := time.Now()
		waiter := c.chef(t, cooklock.Options{})
		_, err := multilock.Acquire(t.Context(), waiter, "nightly", multilock.Options{})
		require.NoError(t, err)
		require.GreaterOrEqual(t, time.Since(start), period)
		require.LessOrEqual(t, time.Since(start), period+multilock.DefaultPoll)
		require.Equal(t, 2, c.swaps())
	})
}

// A process that retries without waiting acquires the lock in the same time, because it remembers
// what it saw.
func TestAskingAgainIsWatching(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell()
		must(t, c.chef(t, cooklock.Options{}))
		start, asker := time.Now(), c.chef(t, cooklock.Options{})
		for {
			_, err := try(t, asker)
			if err == nil {
				break
			}
			require.ErrorAs(t, err, new(*multilock.HeldError))
			time.Sleep(time.Minute)
		}
		require.Equal(t, period, time.Since(start))
	})
}

// A process without rivals watches its own value from its swap on, so it acquires the lock once per
// period, and not every second period.
func TestOwnValueIsWatchedFromTheSwapOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newCell().chef(t, cooklock.Options{})
		start := time.Now()
		for range 4 {
			lock, err := multilock.Acquire(t.Context(), src, "nightly", multilock.Options{})
			require.NoError(t, err)
			require.NoError(t, lock.Release(t.Context()))
		}
		require.LessOrEqual(t, time.Since(start), 3*(period+multilock.DefaultPoll))
	})
}

// The holder's time counts from before the swap: a slow swap reduces it.
func TestTimeCountsFromBeforeTheSwap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell()
		c.after = func(op string) error {
			if op == swap {
				time.Sleep(period / 2)
			}
			return nil
		}
		lock := must(t, c.chef(t, cooklock.Options{}))
		require.LessOrEqual(t, lock.Remaining(), period-period/5-period/2)

		c.after = func(op string) error {
			if op == swap {
				time.Sleep(period)
			}
			return nil
		}
		time.Sleep(2 * period)
		src := c.chef(t, cooklock.Options{})
		_, err := try(t, src)
		require.ErrorIs(t, err, source.ErrHeld)
		time.Sleep(period)
		_, err = try(t, src)
		require.ErrorIs(t, err, source.ErrHeld, "its time was over when the swap came back")
		require.Equal(t, 2, c.swaps())
	})
}

// After a swap whose reply is lost, the lock has no holder for a period.
func TestLostReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell()
		c.after = func(op string) error {
			if op == swap {
				return errors.Join(source.ErrUnsure, errors.New("timeout"))
			}
			return nil
		}
		src := c.chef(t, cooklock.Options{})
		_, err := try(t, src)
		require.ErrorIs(t, err, source.ErrUnsure)
		c.after = func(string) error { return nil }
		_, err = try(t, src)
		require.ErrorIs(t, err, source.ErrHeld)
		time.Sleep(period)
		must(t, src)
	})
}

// A register that cannot be read is an error, and neither held nor free.
func TestRegisterFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, fails := range []string{peek, swap} {
			c, broken := newCell(), errors.New("no space left")
			c.before = func(op string) error {
				if op == fails {
					return broken
				}
				return nil
			}
			_, err := try(t, c.chef(t, cooklock.Options{}))
			require.ErrorIs(t, err, broken)
			require.NotErrorIs(t, err, source.ErrHeld)
			require.Zero(t, c.swaps())
		}
	})
}

// Hosts with different periods could hold the lock at the same time. The first look that shows the
// difference is an error; once the longer period is over, the lock can be acquired.
func TestAnotherPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell()
		must(t, c.chef(t, cooklock.Options{}))
		short := c.chef(t, cooklock.Options{Period: time.Minute})
		for range 10 {
			_, err := try(t, short)
			require.ErrorIs(t, err, source.ErrInvalid)
			require.ErrorContains(t, err, "with a period of 10m0s")
			time.Sleep(period / 10)
		}
		must(t, short)
	})
}

// The value of another program is not replaced, however old it is.
func TestForeignValue(t *testing.T) {
	for _, value := range []string{"1700000000", "garbage", "{}", `{"cook":2,"token":"t","period_ms":1000}`, `{"cook":1,"token":"t","period_ms":-1}`, "\x00\x00"} {
		synctest.Test(t, func(t *testing.T) {
			c := newCell()
			_, _, err := c.Swap(t.Context(), []byte(value))
			require.NoError(t, err)
			src := c.chef(t, cooklock.Options{})
			for range 3 {
				_, err = try(t, src)
				require.ErrorIs(t, err, source.ErrInvalid, value)
				require.NotEmpty(t, look(t, src).Record.Foreign)
				time.Sleep(period)
			}
			require.Equal(t, 1, c.swaps())
		})
	}
}

// No decision depends on wall clocks. A value from the year 2199 is watched for as long as any
// other, and so is one from 1999.
func TestWallClocksDecideNothing(t *testing.T) {
	for _, year := range []int{1999, 2199} {
		synctest.Test(t, func(t *testing.T) {
			c := newCell()
			must(t, c.chef(t, cooklock.Options{}))
			var fields map[string]any
			require.NoError(t, json.Unmarshal(c.values[1], &fields))
			fields["prepared"] = time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
			value, err := json.Marshal(fields)
			require.NoError(t, err)
			_, _, err = c.Swap(t.Context(), value)
			require.NoError(t, err)
			start := time.Now()
			_, err = multilock.Acquire(t.Context(), c.chef(t, cooklock.Options{}), "nightly", multilock.Options{})
			require.NoError(t, err)
			require.GreaterOrEqual(t, time.Since(start), period)
			require.LessOrEqual(t, time.Since(start), period+multilock.DefaultPoll)
		})
	}
}

func TestLookTellsWhatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell()
		require.Equal(t, source.StateFree, look(t, c.chef(t, cooklock.Options{})).State)
		end := time.Now().Add(period - period/5)
		must(t, c.chef(t, cooklock.Options{}))
		watcher := c.chef(t, cooklock.Options{})
		seen := look(t, watcher)
		require.Equal(t, source.StateHeld, seen.State)
		require.Contains(t, seen.Why, "it may be at work until "+end.Local().Format(time.DateTime))
		time.Sleep(period - period/10)
		seen = look(t, watcher)
		require.Equal(t, source.StateSuspect, seen.State, "it is over, if the clocks agree")
		require.Contains(t, seen.Why, "here in 1m0s")
		_, err := try(t, watcher)
		var held *multilock.HeldError
		require.ErrorAs(t, err, &held)
		require.Equal(t, source.StateHeld, held.Observation.State, "who wants the lock is told that it is not to be had")
		time.Sleep(period / 10)
		require.Equal(t, source.StateFree, look(t, watcher).State)
		require.NotEqual(t, source.StateFree, look(t, c.chef(t, cooklock.Options{})).State, "who has not watched cannot know")
	})
}

func TestOptionsAreChecked(t *testing.T) {
	open := func(string) (cooklock.Register, error) { return newCell(), nil }
	for _, opt := range []cooklock.Options{
		{}, {Open: open, Period: time.Millisecond}, {Open: open, Period: -time.Hour},
		{Open: open, Period: source.MaxTTL + time.Hour}, {Open: open, Period: time.Second + time.Microsecond},
	} {
		_, err := cooklock.New(opt)
		require.ErrorIs(t, err, source.ErrInvalid, "%+v", opt)
	}
	src, err := cooklock.New(cooklock.Options{Open: open})
	require.NoError(t, err)
	require.Equal(t, cooklock.DefaultPeriod, src.Period())
	require.Len(t, src.Guarantees(), len(source.Traits()))
	_, err = src.Names(t.Context())
	require.ErrorIs(t, err, source.ErrUnsupported)
}
