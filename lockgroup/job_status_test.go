package lockgroup_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/lockgroup/internal/grouptest"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// The status of an hourly job that ran at noon and succeeded two minutes later, with variations.
// Rule: ticks
func TestStandingOfTicks(t *testing.T) {
	noon := at(t, "2026-01-02T12:00:00Z")
	well := noon.Add(2 * time.Minute)
	success := multilock.Result{Attempt: 1, Final: true, Tick: noon, Began: noon, Every: "1h@0m", Succeeded: well}
	changed := func(change func(*multilock.Result)) *multilock.Result {
		r := success
		change(&r)
		return &r
	}
	failure := func(final bool) *multilock.Result {
		return changed(func(r *multilock.Result) { r.Exit, r.Final, r.Succeeded = 3, final, noon.Add(-58*time.Minute) })
	}
	for name, c := range map[string]struct {
		last   *multilock.Result
		after  time.Duration // since noon
		within time.Duration
		state  lockgroup.JobState
		late   time.Duration
		missed int
	}{
		"not due":                         {&success, 59 * time.Minute, 0, lockgroup.JobWell, 0, 0},
		"due, and in time":                {&success, 85 * time.Minute, 0, lockgroup.JobWell, 25 * time.Minute, 0},
		"late":                            {&success, 91 * time.Minute, 0, lockgroup.JobLate, 31 * time.Minute, 1},
		"late within less":                {&success, 71 * time.Minute, 10 * time.Minute, lockgroup.JobLate, 11 * time.Minute, 0},
		"in time within more":             {&success, 3 * time.Hour, 2 * time.Hour, lockgroup.JobWell, 2 * time.Hour, 2},
		"many are missed":                 {&success, 10*time.Hour + time.Minute, 0, lockgroup.JobLate, 9*time.Hour + time.Minute, 9},
		"failed":                          {failure(true), 20 * time.Minute, 0, lockgroup.JobFailed, 0, 0},
		"to be tried again":               {failure(false), 20 * time.Minute, 0, lockgroup.JobRetry, 0, 0},
		"failed, and was not run again":   {failure(true), 95 * time.Minute, 0, lockgroup.JobLate, 35 * time.Minute, 1},
		"a retry that nobody made":        {failure(false), 95 * time.Minute, 0, lockgroup.JobLate, 35 * time.Minute, 1},
		"no result":                       {nil, 0, 0, lockgroup.JobUnknown, 0, 0},
		"not to be understood":            {&multilock.Result{Foreign: "torn"}, 0, 0, lockgroup.JobUnknown, 0, 0},
		"from the future":                 {&success, -48 * time.Hour, 0, lockgroup.JobUnknown, 0, 0},
		"of a version without a period":   {changed(func(r *multilock.Result) { r.Every = "" }), time.Hour, 0, lockgroup.JobUnknown, 0, 0},
		"of a later version's period":     {changed(func(r *multilock.Result) { r.Every = "every full moon" }), time.Hour, 0, lockgroup.JobUnknown, 0, 0},
		"the same, and it failed":         {changed(func(r *multilock.Result) { r.Every, r.Exit = "", 3 }), time.Hour, 0, lockgroup.JobFailed, 0, 0},
		"without a phase":                 {changed(func(r *multilock.Result) { r.Every = "1h" }), 89 * time.Minute, 0, lockgroup.JobWell, 29 * time.Minute, 0},
		"without a phase, late":           {changed(func(r *multilock.Result) { r.Every = "1h" }), 211 * time.Minute, 0, lockgroup.JobLate, 151 * time.Minute, 3},
		"once and for all":                {&multilock.Result{Attempt: 1, Final: true}, 9000 * time.Hour, 0, lockgroup.JobWell, 0, 0},
		"once and for all, failed":        {&multilock.Result{Attempt: 1, Final: true, Exit: 1}, 0, 0, lockgroup.JobFailed, 0, 0},
		"once and for all, to be retried": {&multilock.Result{Attempt: 1, Exit: 1}, 0, 0, lockgroup.JobRetry, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := lockgroup.Expectation{Within: c.within}.Judge(noon.Add(c.after), c.last)
			require.Equal(t, c.state, s.State, s.Why)
			require.Equal(t, c.late, s.Late)
			require.Equal(t, c.missed, s.Missed)
			require.Equal(t, c.state == lockgroup.JobWell, s.Why == "", s.Why)
		})
	}
}

// The status of a job whose first run has not ended after some time.
// Rule: ticks
func TestStandingInTheFirstRun(t *testing.T) {
	now := at(t, "2026-01-02T12:10:00Z")
	for name, c := range map[string]struct {
		every       string
		age, within time.Duration
		state       lockgroup.JobState
		late        time.Duration
		overran     bool
	}{
		"it has begun":                  {"1h", time.Minute, 0, lockgroup.JobWell, time.Minute, false},
		"late, but the next is not":     {"1h", 40 * time.Minute, 0, lockgroup.JobLate, 40 * time.Minute, false},
		"the next is, too":              {"1h", 91 * time.Minute, 0, lockgroup.JobLate, 91 * time.Minute, true},
		"late within less":              {"1d", 2 * time.Hour, time.Hour, lockgroup.JobLate, 2 * time.Hour, false},
		"begun before its tick":         {"1h@0m", 12 * time.Minute, 0, lockgroup.JobWell, 10 * time.Minute, false},
		"long before, as to others":     {"1h@0m", 101*time.Minute + time.Second, 0, lockgroup.JobLate, 130 * time.Minute, true},
		"once and for all":              {source.EveryOnce, 1000 * time.Hour, 0, lockgroup.JobUnknown, 0, false},
		"once, and it is given so long": {source.EveryOnce, 2 * time.Hour, time.Hour, lockgroup.JobLate, 2 * time.Hour, true},
		"once, and that is not over":    {source.EveryOnce, 2 * time.Hour, 3 * time.Hour, lockgroup.JobWell, 2 * time.Hour, false},
		"not to be understood":          {"every full moon", time.Hour, 0, lockgroup.JobUnknown, 0, false},
		"nobody knows since when":       {"1h", source.Unknown, 0, lockgroup.JobUnknown, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := lockgroup.Expectation{Within: c.within}.JudgeFirst(now, c.every, c.age)
			require.Equal(t, c.state, s.State, s.Why)
			require.Equal(t, c.late, s.Late)
			require.Equal(t, c.overran, s.Overran)
		})
	}
}

// A daily tick by Berlin's wall clock is an hour earlier in summer time.
// Rule: ticks
func TestStandingInAZone(t *testing.T) {
	last := multilock.Result{
		Attempt: 1, Final: true, Tick: at(t, "2026-03-28T06:30:00Z"), Began: at(t, "2026-03-28T06:30:00Z"), Every: "1d@07:30[Europe/Berlin]",
	}
	s := lockgroup.Expectation{}.Judge(at(t, "2026-03-31T12:00:00Z"), &last)
	require.Equal(t, at(t, "2026-03-29T05:30:00Z"), s.Due)
	require.Equal(t, lockgroup.JobLate, s.State)
	require.Equal(t, 2, s.Missed, "those of 29 and 30 March; that of the 31st can still be run")
}

// With an expectation, neither the job's ticks nor a failure in between counts.
// Rule: none (monitoring)
func TestStandingByExpectation(t *testing.T) {
	now := at(t, "2026-01-02T12:00:00Z")
	day := lockgroup.Expectation{Every: 24 * time.Hour, Within: time.Hour}
	ended := func(ago time.Duration, exit int) *multilock.Result {
		return &multilock.Result{Attempt: 1, Final: true, Exit: exit, Tick: now.Add(-ago), Began: now.Add(-ago), Every: "1h", Succeeded: now.Add(-ago)}
	}
	for name, c := range map[string]struct {
		last  *multilock.Result
		state lockgroup.JobState
	}{
		"in time":               {ended(23*time.Hour, 0), lockgroup.JobWell},
		"in time, then failed":  {ended(23*time.Hour, 3), lockgroup.JobWell},
		"late, and it is meant": {ended(24*time.Hour+time.Minute, 0), lockgroup.JobWell},
		"late":                  {ended(26*time.Hour, 0), lockgroup.JobLate},
		"never":                 {&multilock.Result{Attempt: 1, Exit: 3}, lockgroup.JobLate},
		"a success to come":     {ended(-48*time.Hour, 0), lockgroup.JobUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.state, day.Judge(now, c.last).State)
		})
	}
	require.Equal(t, lockgroup.JobLate, day.JudgeEnd(now, time.Time{}).State)
	require.Equal(t, lockgroup.JobLate, day.JudgeEnd(now, now.Add(-26*time.Hour)).State)
	require.Equal(t, lockgroup.JobWell, day.JudgeEnd(now, now.Add(-time.Hour)).State)
}

// The last success is kept in the results of later failures.
// Rule: result
func TestResultsKeepTheLastSuccess(t *testing.T) {
	src := grouptest.Opener(t)()
	plan := &lockgroup.Plan{Every: lockgroup.EverySpan(time.Second), Retries: 1}
	lock := take(t, src)
	var made []lockgroup.Attempt
	attempts := lockgroup.Attempts{Source: src, Plan: plan, Work: ending(&made, 0, 3, 3)}
	first, err := attempts.Run(t.Context(), lock)
	require.NoError(t, err)
	require.False(t, first.Last.Succeeded.IsZero())
	require.Equal(t, "1s", first.Last.Every)
	require.Eventually(t, func() bool {
		out, err := attempts.Run(t.Context(), lock)
		require.NoError(t, err)
		return out.Step == lockgroup.StepFailed
	}, 30*time.Second, 50*time.Millisecond)
	recorded, err := lock.Outcome(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, recorded.Attempt)
	require.Equal(t, first.Last.Succeeded, recorded.Succeeded)
}
