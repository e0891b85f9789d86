package lockgroup_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
)

func TestPlanNext(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	failure := func(attempt int) *multilock.Result { return &multilock.Result{Exit: 3, Attempt: attempt} }
	final := func(attempt int) *multilock.Result { return &multilock.Result{Exit: 3, Attempt: attempt, Final: true} }
	in := func(slot time.Time, r *multilock.Result) *multilock.Result {
		r.Slot = slot
		return r
	}
	for name, c := range map[string]struct {
		plan    lockgroup.Plan
		last    *multilock.Result
		step    lockgroup.Step
		attempt int
	}{
		"nothing yet":                    {lockgroup.Plan{}, nil, lockgroup.Run, 1},
		"done":                           {lockgroup.Plan{Retries: 5}, &multilock.Result{Attempt: 1}, lockgroup.Done, 0},
		"failed":                         {lockgroup.Plan{}, failure(1), lockgroup.Failed, 0},
		"a retry is left":                {lockgroup.Plan{Retries: 1}, failure(1), lockgroup.Run, 2},
		"the retries are used up":        {lockgroup.Plan{Retries: 1}, failure(2), lockgroup.Failed, 0},
		"fewer retries than were made":   {lockgroup.Plan{Retries: 1}, failure(9), lockgroup.Failed, 0},
		"final is final":                 {lockgroup.Plan{Retries: 9}, final(1), lockgroup.Failed, 0},
		"killed by a signal":             {lockgroup.Plan{}, &multilock.Result{Signal: "killed", Attempt: 1}, lockgroup.Failed, 0},
		"not to be understood":           {lockgroup.Plan{Retries: 9}, &multilock.Result{Foreign: "torn"}, lockgroup.Unclear, 0},
		"not to be understood, in slots": {lockgroup.Plan{Slot: noon}, &multilock.Result{Foreign: "torn"}, lockgroup.Unclear, 0},
		"the same slot":                  {lockgroup.Plan{Slot: noon}, in(noon, &multilock.Result{Attempt: 1}), lockgroup.Done, 0},
		"a new slot":                     {lockgroup.Plan{Slot: noon}, in(noon.Add(-time.Hour), &multilock.Result{Attempt: 1}), lockgroup.Run, 1},
		"a new slot after a failure":     {lockgroup.Plan{Slot: noon}, in(noon.Add(-time.Hour), final(4)), lockgroup.Run, 1},
		"a later slot is done":           {lockgroup.Plan{Slot: noon}, in(noon.Add(time.Hour), &multilock.Result{Attempt: 1}), lockgroup.Done, 0},
		"a later slot failed":            {lockgroup.Plan{Slot: noon, Retries: 9}, in(noon.Add(time.Hour), failure(1)), lockgroup.Failed, 0},
		"a retry in the slot":            {lockgroup.Plan{Slot: noon, Retries: 2}, in(noon, failure(2)), lockgroup.Run, 3},
		"slots after once":               {lockgroup.Plan{Slot: noon}, &multilock.Result{Attempt: 1}, lockgroup.Run, 1},
		"once after slots":               {lockgroup.Plan{}, in(noon, &multilock.Result{Attempt: 1}), lockgroup.Done, 0},
	} {
		t.Run(name, func(t *testing.T) {
			step, attempt := c.plan.Next(c.last)
			require.Equal(t, c.step, step)
			require.Equal(t, c.attempt, attempt)
		})
	}
}

func TestPlanComplete(t *testing.T) {
	slot := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	plan := lockgroup.Plan{Retries: 1, Slot: slot}
	require.Equal(t, multilock.Result{Exit: 3, Attempt: 1, Slot: slot}, plan.Complete(multilock.Result{Exit: 3}, 1))
	require.Equal(t, multilock.Result{Exit: 3, Attempt: 2, Slot: slot, Final: true}, plan.Complete(multilock.Result{Exit: 3}, 2))
	require.Equal(t, multilock.Result{Attempt: 1, Slot: slot, Final: true}, plan.Complete(multilock.Result{}, 1))
}

// What a plan calls final it never runs again, and what it does not, it does.
func TestPlanAgreesWithItself(t *testing.T) {
	for retries := range 4 {
		plan := lockgroup.Plan{Retries: retries}
		var last *multilock.Result
		runs := 0
		for {
			step, attempt := plan.Next(last)
			if step != lockgroup.Run {
				require.Equal(t, lockgroup.Failed, step)
				require.True(t, last.Final)
				break
			}
			require.True(t, last == nil || !last.Final)
			result := plan.Complete(multilock.Result{Exit: 1}, attempt)
			last = &result
			runs++
		}
		require.Equal(t, retries+1, runs)
	}
}

func TestSlotAt(t *testing.T) {
	at := func(text string) time.Time {
		moment, err := time.Parse(time.RFC3339Nano, text)
		require.NoError(t, err)
		return moment
	}
	for _, c := range []struct {
		now   string
		every time.Duration
		slot  string
	}{
		{"2026-01-02T12:00:00Z", time.Hour, "2026-01-02T12:00:00Z"},
		{"2026-01-02T12:29:59.999999999Z", time.Hour, "2026-01-02T12:00:00Z"},
		{"2026-01-02T12:30:00Z", time.Hour, "2026-01-02T13:00:00Z"},
		{"2026-01-02T11:59:57Z", time.Minute, "2026-01-02T12:00:00Z"},
		{"2026-01-02T12:00:03+02:00", time.Minute, "2026-01-02T10:00:00Z"},
		{"2026-01-02T11:59:00Z", 24 * time.Hour, "2026-01-02T00:00:00Z"},
		{"2026-01-02T12:01:00Z", 24 * time.Hour, "2026-01-03T00:00:00Z"},
		{"1969-12-31T23:59:59Z", time.Minute, "1970-01-01T00:00:00Z"},
		{"1969-12-31T23:58:59Z", time.Minute, "1969-12-31T23:59:00Z"},
		{"2026-01-02T12:00:00Z", 1, "2026-01-02T12:00:00Z"},
		{"1970-01-01T00:00:01Z", 3 * time.Second, "1970-01-01T00:00:00Z"},
		{"1970-01-01T00:00:02Z", 3 * time.Second, "1970-01-01T00:00:03Z"},
	} {
		got := lockgroup.SlotAt(at(c.now), c.every)
		require.True(t, at(c.slot).Equal(got), "%s every %s: %s", c.now, c.every, got)
	}
}
