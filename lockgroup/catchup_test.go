package lockgroup_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/lockgroup/internal/grouptest"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
)

func mustCatchUp(t *testing.T, text string) lockgroup.CatchUp {
	t.Helper()
	c, err := lockgroup.ParseCatchUp(text)
	require.NoError(t, err)
	require.Equal(t, text, c.String())
	return c
}

// Rule: none (parser)
func TestParseCatchUp(t *testing.T) {
	for _, text := range []string{"none", "latest", "all:1", "all:1000"} {
		mustCatchUp(t, text)
	}
	for _, text := range []string{"", "all", "all:", "all:0", "all:-1", "all:1001", "all:x", "Latest", "last", "latest:2"} {
		_, err := lockgroup.ParseCatchUp(text)
		require.ErrorIs(t, err, multilock.ErrInvalid, text)
	}
}

// A host that starts this long after noon, when the job last ran, runs these ticks, one after another and
// each successfully.
// Rule: catch-up
func TestCatchUp(t *testing.T) {
	noon := at(t, "2026-01-02T12:00:00Z")
	for name, c := range map[string]struct {
		every, catchUp string
		after          time.Duration
		ticks          []time.Duration // since noon
		missed         int             // in total
	}{
		"none is as ever":              {"1h@0m", "none", 5*time.Hour + 10*time.Minute, []time.Duration{5 * time.Hour}, 4},
		"latest, in time":              {"1h@0m", "latest", time.Hour, []time.Duration{time.Hour}, 0},
		"latest, a little early":       {"1h@0m", "latest", time.Hour - 29*time.Second, []time.Duration{time.Hour}, 0},
		"latest, too early":            {"1h@0m", "latest", time.Hour - 31*time.Second, nil, 0},
		"latest, much too late":        {"1h@0m", "latest", 5*time.Hour + 59*time.Minute, []time.Duration{5 * time.Hour}, 4},
		"all, in time":                 {"1h@0m", "all:3", 59*time.Minute + 45*time.Second, []time.Duration{time.Hour}, 0},
		"all, some were missed":        {"1h@0m", "all:3", 3*time.Hour + 50*time.Minute, []time.Duration{time.Hour, 2 * time.Hour, 3 * time.Hour}, 0},
		"all, more were missed":        {"1h@0m", "all:3", 9*time.Hour + time.Second, []time.Duration{6 * time.Hour, 7 * time.Hour, 8 * time.Hour, 9 * time.Hour}, 5},
		"nothing is due":               {"1h@0m", "all:3", 50 * time.Minute, nil, 0},
		"the clock was set back":       {"1h@0m", "all:3", -20 * time.Minute, nil, 0},
		"a short span: a tenth early":  {"10s@0s", "latest", 9200 * time.Millisecond, []time.Duration{10 * time.Second}, 0},
		"a short span: more than that": {"10s@0s", "latest", 8900 * time.Millisecond, nil, 0},
		"no phase, latest is as ever":  {"1h", "latest", 5*time.Hour + 10*time.Minute, []time.Duration{5*time.Hour + 10*time.Minute}, 4},
		"no phase, in time":            {"1h", "all:3", time.Hour + 5*time.Minute, []time.Duration{time.Hour + 5*time.Minute}, 0},
		"no phase, early":              {"1h", "all:3", 31 * time.Minute, []time.Duration{time.Hour}, 0},
		"no phase, too soon":           {"1h", "all:3", 29 * time.Minute, nil, 0},
		"no phase, half a span late":   {"1h", "all:3", 95 * time.Minute, []time.Duration{time.Hour}, 0},
		"no phase, some were missed":   {"1h", "all:3", 3*time.Hour + 5*time.Minute, []time.Duration{time.Hour, 2 * time.Hour, 3*time.Hour + 5*time.Minute}, 0},
		"no phase, before the next":    {"1h", "all:3", 2*time.Hour + 40*time.Minute, []time.Duration{time.Hour, 2 * time.Hour, 3 * time.Hour}, 0},
		"no phase, more were missed":   {"1h", "all:2", 6 * time.Hour, []time.Duration{4 * time.Hour, 5 * time.Hour, 6 * time.Hour}, 3},
		"over a change of clocks":      {"1d@12:00[Europe/London]", "all:200", 180 * day, nil, 0}, // the ticks are below
	} {
		t.Run(name, func(t *testing.T) {
			plan := lockgroup.Plan{Every: mustEvery(t, c.every), CatchUp: mustCatchUp(t, c.catchUp)}
			last := multilock.Result{Attempt: 1, Final: true, Tick: noon, Began: noon}
			ticks, missed := caughtUp(t, plan, noon.Add(c.after), &last)
			if c.ticks == nil && c.after > day {
				require.Len(t, ticks, 180)
				require.Equal(t, at(t, "2026-03-30T11:00:00Z"), ticks[86])
				return
			}
			var since []time.Duration
			for _, tick := range ticks {
				since = append(since, tick.Sub(noon))
			}
			require.Equal(t, c.ticks, since)
			require.Equal(t, c.missed, missed)
		})
	}
}

// caughtUp returns the ticks that a plan runs now, all successfully. last is the last result, and is
// updated.
func caughtUp(t *testing.T, plan lockgroup.Plan, now time.Time, last *multilock.Result) (ticks []time.Time, missed int) {
	t.Helper()
	for {
		d := plan.Next(now, last)
		if d.Step != lockgroup.StepRun {
			require.Equal(t, lockgroup.StepDone, d.Step)
			return ticks, missed
		}
		require.Equal(t, 1, d.Attempt)
		require.False(t, d.InFuture)
		require.LessOrEqual(t, len(ticks), lockgroup.MaxCatchUp)
		*last = plan.Complete(multilock.Result{}, d)
		ticks, missed = append(ticks, d.Tick), missed+d.Missed
	}
}

// A failed tick is retried before later ticks, unless it is too old; a tick without attempts left is not.
// Rule: catch-up
func TestCatchUpAfterAFailure(t *testing.T) {
	noon := at(t, "2026-01-02T12:00:00Z")
	for _, every := range []string{"1h@0m", "1h"} {
		plan := lockgroup.Plan{Every: mustEvery(t, every), CatchUp: mustCatchUp(t, "all:3"), Retries: 1}
		failed := multilock.Result{Attempt: 1, Exit: 3, Tick: noon, Began: noon, Missed: 7}
		d := plan.Next(noon.Add(2*time.Hour+time.Minute), &failed)
		require.Equal(t, lockgroup.Decision{Attempt: 2, Tick: noon, Began: noon, Missed: 7}, d)
		d = plan.Next(noon.Add(9*time.Hour), &failed)
		require.Equal(t, 1, d.Attempt)
		require.Equal(t, noon.Add(6*time.Hour), d.Tick)
		failed.Final = true
		require.Equal(t, noon.Add(time.Hour), plan.Next(noon.Add(2*time.Hour+time.Minute), &failed).Tick)
	}
}

// Hosts whose lines fire at any time, and that are down for days, run each tick at most once, in order,
// and only miss those that are too old.
// Rule: catch-up
func TestCatchUpOfACluster(t *testing.T) {
	for seed := range uint64(300) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test's
			every := []string{"1h@17m", "1h", "1d@02:30[Europe/Berlin]", "3h@1h"}[rng.IntN(4)]
			most := 1 + rng.IntN(5)
			plan := lockgroup.Plan{Every: mustEvery(t, every), CatchUp: mustCatchUp(t, fmt.Sprintf("all:%d", most))}
			now := at(t, "2026-03-27T12:00:00Z")
			var last *multilock.Result
			for range 200 {
				now = now.Add(time.Duration(rng.Int64N(int64(20 * time.Minute))))
				if rng.IntN(20) == 0 {
					now = now.Add(time.Duration(rng.Int64N(int64(3 * day))))
				}
				for left := rng.IntN(most + 3); left > 0; left-- { // a host crashes after this many
					d := plan.Next(now, last)
					if d.Step != lockgroup.StepRun {
						break
					}
					if last != nil {
						require.True(t, d.Tick.After(last.Tick), "%s after %s", d.Tick, last.Tick)
						if d.Missed > 0 {
							require.Greater(t, plan.Every.Missed(now, *last), most-1)
						}
					}
					r := plan.Complete(multilock.Result{}, d)
					last = &r
				}
			}
			_, _ = caughtUp(t, plan, now, last)
			require.Zero(t, plan.Every.Missed(now, *last), "nothing is left")
		})
	}
}

// ticking is a source with a clock that a test sets.
type ticking struct {
	*fslock.Source
	now time.Time
}

func (s *ticking) Now(context.Context) (time.Time, error) { return s.now, nil }

// A host that crashes at any tick leaves the rest, and none twice, to the next host.
// Rule: catch-up
func TestCatchUpThroughCrashes(t *testing.T) {
	t.Parallel()
	noon := at(t, "2026-01-02T12:00:00Z")
	plan := &lockgroup.Plan{Every: mustEvery(t, "1h@0m"), CatchUp: mustCatchUp(t, "all:10")}
	for crash := range 6 {
		src := &ticking{grouptest.Opener(t)(), noon}
		var ran []time.Time
		run := func(dies int) error {
			lock := take(t, src)
			defer func() { require.NoError(t, lock.Release(context.Background())) }()
			made := 0
			_, err := lockgroup.Attempts{Source: src, Plan: plan, Work: func(_ context.Context, a lockgroup.Attempt) (multilock.Result, error) {
				require.Equal(t, made == 0, a.First)
				if made++; made > dies {
					return multilock.Result{}, errWork
				}
				ran = append(ran, a.Tick)
				return multilock.Result{}, nil
			}}.Run(t.Context(), lock)
			return err
		}
		require.NoError(t, run(99))
		src.now = noon.Add(5*time.Hour + time.Minute)
		if err := run(crash); err != nil {
			require.ErrorIs(t, err, errWork)
			require.Less(t, crash, 5)
		}
		require.NoError(t, run(99))
		require.NoError(t, run(99))
		require.Len(t, ran, 6)
		for i, tick := range ran {
			require.Equal(t, noon.Add(time.Duration(i)*time.Hour), tick)
		}
	}
}

// A tick that fails with no attempts left is the last one for now; the next call continues after it.
// Rule: catch-up
func TestCatchUpStopsAtAFailure(t *testing.T) {
	t.Parallel()
	noon := at(t, "2026-01-02T12:00:00Z")
	src := &ticking{grouptest.Opener(t)(), noon}
	plan := &lockgroup.Plan{Every: mustEvery(t, "1h@0m"), CatchUp: mustCatchUp(t, "all:10"), Retries: 1}
	lock := take(t, src)
	var made []lockgroup.Attempt
	attempts := lockgroup.Attempts{Source: src, Plan: plan, Work: ending(&made, 0, 0, 3, 3, 0, 0)}
	_, err := attempts.Run(t.Context(), lock)
	require.NoError(t, err)
	src.now = noon.Add(4 * time.Hour)
	out, err := attempts.Run(t.Context(), lock)
	require.NoError(t, err)
	require.Equal(t, lockgroup.StepFailed, out.Step)
	require.Equal(t, noon.Add(2*time.Hour), out.Last.Tick)
	seen, err := attempts.Peek(t.Context(), "x")
	require.NoError(t, err)
	require.Equal(t, lockgroup.StepRun, seen.Step)
	out, err = attempts.Run(t.Context(), lock)
	require.NoError(t, err)
	require.Equal(t, lockgroup.StepDone, out.Step)
	require.Equal(t, noon.Add(4*time.Hour), out.Last.Tick)
	require.Len(t, made, 6)
}
