package lockgroup_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/span"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// Rule: attempts
func TestPlanNext(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	failure := func(attempt int) *multilock.Result { return &multilock.Result{Exit: 3, Attempt: attempt} }
	final := func(attempt int) *multilock.Result { return &multilock.Result{Exit: 3, Attempt: attempt, Final: true} }
	for name, c := range map[string]struct {
		plan    lockgroup.Plan
		last    *multilock.Result
		step    lockgroup.Step
		attempt int
	}{
		"nothing yet":                  {lockgroup.Plan{}, nil, lockgroup.StepRun, 1},
		"done":                         {lockgroup.Plan{Retries: 5}, &multilock.Result{Attempt: 1}, lockgroup.StepDone, 0},
		"failed":                       {lockgroup.Plan{}, failure(1), lockgroup.StepFailed, 0},
		"a retry is left":              {lockgroup.Plan{Retries: 1}, failure(1), lockgroup.StepRun, 2},
		"the retries are used up":      {lockgroup.Plan{Retries: 1}, failure(2), lockgroup.StepFailed, 0},
		"fewer retries than were made": {lockgroup.Plan{Retries: 1}, failure(9), lockgroup.StepFailed, 0},
		"final is final":               {lockgroup.Plan{Retries: 9}, final(1), lockgroup.StepFailed, 0},
		"killed by a signal":           {lockgroup.Plan{}, &multilock.Result{Signal: "killed", Attempt: 1}, lockgroup.StepFailed, 0},
		"not to be understood":         {lockgroup.Plan{Retries: 9}, &multilock.Result{Foreign: "torn"}, lockgroup.StepUnclear, 0},
		"once after ticks":             {lockgroup.Plan{}, &multilock.Result{Attempt: 1, Tick: noon, Began: noon}, lockgroup.StepDone, 0},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, lockgroup.Decision{Step: c.step, Attempt: c.attempt}, c.plan.Next(time.Time{}, c.last))
		})
	}
}

// The decisions for ticks half past each hour, at a given time after a last result.
// Rule: ticks
func TestPlanNextTick(t *testing.T) {
	hour := at(t, "2026-01-02T12:30:00Z")
	tick := func(attempt, exit int) multilock.Result {
		return multilock.Result{Attempt: attempt, Exit: exit, Tick: hour, Began: hour.Add(time.Minute)}
	}
	first := func(now time.Time, tick time.Time) lockgroup.Decision {
		return lockgroup.Decision{Attempt: 1, Tick: tick, Began: now}
	}
	mean := func(d lockgroup.Decision, change func(*lockgroup.Decision)) lockgroup.Decision {
		change(&d)
		return d
	}
	next := hour.Add(time.Hour)
	for name, c := range map[string]struct {
		every string
		after time.Duration // since the tick
		last  multilock.Result
		want  lockgroup.Decision
	}{
		"the same tick":                  {"1h@30m", 10 * time.Minute, tick(1, 0), lockgroup.Decision{Step: lockgroup.StepDone}},
		"the same tick, failed":          {"1h@30m", 10 * time.Minute, tick(3, 1), lockgroup.Decision{Step: lockgroup.StepFailed}},
		"the same tick, to be retried":   {"1h@30m", 10 * time.Minute, tick(2, 1), lockgroup.Decision{Attempt: 3, Tick: hour, Began: hour.Add(time.Minute)}},
		"the next one":                   {"1h@30m", 59 * time.Minute, tick(1, 0), first(hour.Add(59*time.Minute), next)},
		"the next one after a failure":   {"1h@30m", 59 * time.Minute, tick(3, 1), first(hour.Add(59*time.Minute), next)},
		"the next one, but too soon":     {"1h@30m", 30*time.Minute + time.Second, tick(1, 0), lockgroup.Decision{Step: lockgroup.StepDone}},
		"too soon to be given up":        {"1h@30m", 30*time.Minute + time.Second, tick(2, 1), lockgroup.Decision{Attempt: 3, Tick: hour, Began: hour.Add(time.Minute)}},
		"the clock was set back":         {"1h@30m", -20 * time.Minute, tick(1, 0), lockgroup.Decision{Step: lockgroup.StepDone}},
		"not to be understood":           {"1h@30m", time.Hour, multilock.Result{Foreign: "torn"}, lockgroup.Decision{Step: lockgroup.StepUnclear}},
		"ticks after once":               {"1h@30m", 0, multilock.Result{Attempt: 1}, first(hour, hour)},
		"no phase":                       {"1h", 59 * time.Minute, tick(1, 0), first(hour.Add(59*time.Minute), next)},
		"no phase, too soon":             {"1h", 29 * time.Minute, tick(1, 0), lockgroup.Decision{Step: lockgroup.StepDone}},
		"no phase, late":                 {"1h", 70 * time.Minute, tick(1, 0), first(hour.Add(70*time.Minute), hour.Add(70*time.Minute))},
		"no phase, asked ever so often":  {"1h", 31 * time.Minute, tick(1, 0), first(hour.Add(31*time.Minute), next)},
		"no phase, once and for all":     {"1h", 5 * time.Minute, multilock.Result{Attempt: 1}, first(hour.Add(5*time.Minute), hour.Add(5*time.Minute))},
		"the clock was set back by much": {"1h@30m", -40 * time.Minute, tick(1, 0), mean(first(hour.Add(-40*time.Minute), hour.Add(-time.Hour)), func(d *lockgroup.Decision) { d.InFuture = true })},
		"a tick from the future":         {"1h", -5 * 365 * 24 * time.Hour, tick(1, 1), mean(first(hour.AddDate(-5, 0, 1), hour.AddDate(-5, 0, 1)), func(d *lockgroup.Decision) { d.InFuture = true })},
		"a tick of longer spans":         {"1m", 40 * time.Second, multilock.Result{Attempt: 1, Tick: next, Began: hour}, mean(first(hour.Add(40*time.Second), hour.Add(40*time.Second)), func(d *lockgroup.Decision) { d.InFuture = true })},
		"the same, but too soon":         {"1m", 29 * time.Second, multilock.Result{Attempt: 1, Tick: next, Began: hour}, lockgroup.Decision{Step: lockgroup.StepDone}},
		"near the edge":                  {"1h@0m", time.Hour + 5*time.Minute, tick(1, 0), mean(first(hour.Add(65*time.Minute), hour.Add(90*time.Minute)), func(d *lockgroup.Decision) { d.Better = mustEvery(t, "1h@35m") })},
	} {
		t.Run(name, func(t *testing.T) {
			plan := lockgroup.Plan{Retries: 2, Every: mustEvery(t, c.every)}
			require.Equal(t, c.want, plan.Next(hour.Add(c.after), &c.last))
		})
	}
}

// Rule: attempts, ticks
func TestPlanComplete(t *testing.T) {
	tick := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	began := tick.Add(-time.Second)
	plan := lockgroup.Plan{Retries: 1}
	attempt := func(n int) lockgroup.Decision { return lockgroup.Decision{Attempt: n, Tick: tick, Began: began} }
	require.Equal(t, multilock.Result{Exit: 3, Attempt: 1, Tick: tick, Began: began}, plan.Complete(multilock.Result{Exit: 3}, attempt(1)))
	require.Equal(t, multilock.Result{Exit: 3, Attempt: 2, Tick: tick, Began: began, Final: true}, plan.Complete(multilock.Result{Exit: 3}, attempt(2)))
	require.Equal(t, multilock.Result{Attempt: 1, Tick: tick, Began: began, Final: true}, plan.Complete(multilock.Result{}, attempt(1)))
}

// A plan never repeats a final result, and always repeats one that is not final.
// Rule: attempts
func TestPlanAgreesWithItself(t *testing.T) {
	for retries := range 4 {
		plan := lockgroup.Plan{Retries: retries}
		var last *multilock.Result
		runs := 0
		for {
			d := plan.Next(time.Time{}, last)
			if d.Step != lockgroup.StepRun {
				require.Equal(t, lockgroup.StepFailed, d.Step)
				require.True(t, last.Final)
				break
			}
			require.True(t, last == nil || !last.Final)
			result := plan.Complete(multilock.Result{Exit: 1}, d)
			last = &result
			runs++
		}
		require.Equal(t, retries+1, runs)
	}
}

// Rule: none (parser)
func TestParseEvery(t *testing.T) {
	for text, short := range map[string]string{
		"1h":                       "1h",
		"90":                       "1m30s",
		"1h@30m":                   "1h@30m",
		"1h@0":                     "",
		"1h@0s":                    "1h@0s",
		"1d@07:30":                 "1d@07:30",
		"1d@7:30":                  "1d@07:30",
		"24h@7h30m":                "1d@07:30",
		"1d@07:30:15":              "1d@07:30:15",
		"2d@07:30[Europe/Berlin]":  "2d@07:30[Europe/Berlin]",
		"1d@07:30[UTC]":            "1d@07:30[UTC]",
		"7d@102h":                  "7d@102h",
		"1.5d@1d":                  "36h@1d",
		"1d@00:00[Asia/Kathmandu]": "1d@00:00[Asia/Kathmandu]",
	} {
		if short == "" {
			_, err := lockgroup.ParseEvery(text)
			require.Error(t, err, text)
			continue
		}
		every, err := lockgroup.ParseEvery(text)
		require.NoError(t, err, text)
		require.Equal(t, short, every.String(), text)
		require.False(t, every.IsZero(), text)
	}
}

// Rule: none (parser)
func TestParseEveryRefuses(t *testing.T) {
	for text, why := range map[string]string{
		"":                         `invalid duration ""`,
		"soon":                     `invalid duration "soon"`,
		"-1h":                      "a duration cannot be negative",
		"0":                        "the span 0s is shorter than 1s",
		"10ms":                     "the span 10ms is shorter than 1s",
		"200000d":                  `invalid duration "200000d"`,
		"2000000h":                 "is longer than a hundred years",
		"1h@":                      `invalid duration ""`,
		"1h@soon":                  `invalid duration "soon"`,
		"1h@30":                    "the phase 30 has no unit; write 30m or 30s",
		"1h@1h":                    "the phase 1h is not shorter than the span 1h",
		"1d@25h":                   "the phase 25h is not shorter than the span 1d",
		"1h@-1m":                   "a duration cannot be negative",
		"1h@30m@1m":                `invalid duration "30m@1m"`,
		"1h@00:30":                 "the time of day 00:30 needs a span of whole days",
		"36h@07:30[Europe/Berlin]": "the time of day 07:30 needs a span of whole days",
		"1d@24:00":                 `"24:00" is no time of day; write 07:30`,
		"1d@7:5x":                  `"7:5x" is no time of day; write 07:30`,
		"1d@07:30Z":                `"07:30Z" is no time of day; write 07:30`,
		"1d@7h[Europe/Berlin]":     "a time zone needs a time of day",
		"1d@07:30[Mars/Olympus]":   `this host does not know the time zone "Mars/Olympus": correct the name, or install the package tzdata here`,
		"1d@07:30[../../etc]":      "this host does not know the time zone",
		"1d@07:30[Local]":          "does not end with the name of a time zone",
		"1d@07:30[]":               "does not end with the name of a time zone",
		"1d@07:30[Europe/Berlin":   "does not end with the name of a time zone",
		"1d@07:30[Europe/Berlin]x": "does not end with the name of a time zone",
	} {
		_, err := lockgroup.ParseEvery(text)
		require.ErrorIs(t, err, multilock.ErrInvalid, text)
		require.ErrorContains(t, err, why, text)
	}
}

// Rule: none (parser)
func TestEverySpan(t *testing.T) {
	require.True(t, lockgroup.EverySpan(0).IsZero())
	require.True(t, lockgroup.Every{}.IsZero())
	require.Empty(t, lockgroup.Every{}.String())
	require.Equal(t, mustEvery(t, "90m"), lockgroup.EverySpan(90*time.Minute))
}

// A parsed value has a form that parses to the same value, and has ticks nearby.
// Rule: none (parser)
func FuzzParseEvery(f *testing.F) {
	for _, text := range []string{
		"1h", "1h@30m", "1d@07:30", "1d@07:30[Europe/Berlin]", "3d@02:30:15[Australia/Lord_Howe]", "1.5s@1ms", "90", "7d@102h", "1d@12:00[Asia/Kathmandu]", "36500d@0s", "7d",
	} {
		f.Add(text, int64(1774755000))
		f.Add(text, int64(-62135597052)) // before the year 1
	}
	f.Fuzz(func(t *testing.T, text string, seconds int64) {
		every, err := lockgroup.ParseEvery(text)
		if err != nil {
			require.ErrorIs(t, err, multilock.ErrInvalid)
			return
		}
		again, err := lockgroup.ParseEvery(every.String())
		require.NoError(t, err)
		require.Equal(t, every.String(), again.String())
		now := time.Unix(seconds%1e11, 0)
		d := lockgroup.Plan{Every: every}.Next(now, nil)
		require.Equal(t, d, lockgroup.Plan{Every: again}.Next(now, nil))
		length, _, _ := strings.Cut(every.String(), "@")
		apart, err := span.Parse(length)
		require.NoError(t, err)
		require.LessOrEqual(t, d.Tick.Sub(now).Abs(), apart/2+2*day)
	})
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	moment, err := time.Parse(time.RFC3339Nano, text)
	require.NoError(t, err)
	return moment
}

func mustEvery(t *testing.T, text string) lockgroup.Every {
	t.Helper()
	every, err := lockgroup.ParseEvery(text)
	require.NoError(t, err)
	return every
}

// Only the exit codes of RetryOn allow another attempt, on any host.
// Rule: attempts
func TestPlanRetryOn(t *testing.T) {
	p := lockgroup.Plan{Retries: 2, RetryOn: []int{75, 137}}
	for exit, again := range map[int]bool{0: false, 1: false, 75: true, 137: true} {
		r := p.Complete(multilock.Result{Exit: exit}, lockgroup.Decision{Attempt: 1})
		require.Equal(t, !again, r.Final, exit)
		r.Final = false // recorded by a host without RetryOn
		require.Equal(t, again, p.Again(r).Step == lockgroup.StepRun, exit)
	}
	require.True(t, p.Complete(multilock.Result{Exit: 75}, lockgroup.Decision{Attempt: 3}).Final)
}

// The pause before a retry doubles up to 32 times, and varies by a quarter. There is no pause before the
// first attempt or without RetryDelay.
// Rule: attempts
func TestPlanPause(t *testing.T) {
	p := lockgroup.Plan{RetryDelay: 4 * time.Second}
	require.Zero(t, lockgroup.Plan{}.Pause(3))
	require.Zero(t, p.Pause(1))
	for attempt, mean := range map[int]time.Duration{2: 4, 3: 8, 4: 16, 7: 128, 8: 128, 100: 128} {
		for range 100 {
			require.InDelta(t, mean*time.Second, p.Pause(attempt), float64(mean*time.Second/4)+1, attempt)
		}
	}
	require.ErrorIs(t, lockgroup.Plan{RetryDelay: -1}.Check(), source.ErrInvalid)
}
