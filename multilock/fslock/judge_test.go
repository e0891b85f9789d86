package fslock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

var (
	alive = process.Evidence{Life: process.Alive, Why: "process 7 is running on this host"}
	gone7 = process.Evidence{Life: process.Gone, Why: "process 7 no longer exists"}
)

// case of the table below: evidence, and what it must say.
type trial struct {
	evidence
	want source.State
	why  string
	next time.Duration
}

func (c trial) judge(t *testing.T) {
	t.Helper()
	got := judge(c.evidence)
	require.Equal(t, c.want.String(), got.State.String(), got.Why)
	require.Contains(t, got.Why, c.why)
	require.Equal(t, c.next, got.Next)
}

func judgeAll(t *testing.T, trials map[string]trial) {
	t.Helper()
	for name, c := range trials {
		t.Run(name, func(t *testing.T) { c.judge(t) })
	}
}

// Without a TTL only the caller can say for how long silence is no proof.
func TestJudgeWithoutATTL(t *testing.T) {
	foreign, peer := source.Record{Foreign: "the lock file is torn"}, peerRecord("host", 7)
	const year, window = 365 * 24 * time.Hour, 6*time.Second + 100*time.Millisecond
	judgeAll(t, map[string]trial{
		"its pid proves nothing":        {evidence{Evidence: source.Evidence{Holder: gone7, Job: gone7}}, source.StateHeld, "Python MultiLock", 5 * glance},
		"foreign, for ever":             {evidence{Evidence: source.Evidence{Record: foreign, Silence: year, Unchanged: year, Watched: year}}, source.StateHeld, "torn; it has no ttl", 5 * glance},
		"peer, for ever":                {evidence{Evidence: source.Evidence{Record: peer, Silence: year, Unchanged: year, Watched: year}}, source.StateHeld, "Python MultiLock; it has no ttl", 5 * glance},
		"foreign, max-age not over":     {evidence{Evidence: source.Evidence{Record: foreign, MaxAge: time.Minute, Silence: 30 * time.Second}}, source.StateHeld, "torn", 5 * glance},
		"peer, max-age not watched":     {evidence{Evidence: source.Evidence{Record: peer, MaxAge: time.Minute, Silence: time.Minute, Watched: window - 1}}, source.StateSuspect, "watching it for 6.1s", window / 6},
		"newer, max-age over":           {evidence{Evidence: source.Evidence{MaxAge: time.Minute, Silence: time.Minute, Watched: window}, strange: strange{ours: true}}, source.StateDead, "limit of 1m0s", 0},
		"peer, max-age over":            {evidence{Evidence: source.Evidence{Record: peer, MaxAge: time.Minute, Silence: time.Minute, Watched: window}}, source.StateDead, "limit of 1m0s", 0},
		"peer that lives, max-age over": {evidence{Evidence: source.Evidence{Record: peer, MaxAge: time.Minute, Silence: year, Watched: year}, peer: alive}, source.StateHeld, "process 7 is running on this host", glance},
		"peer that is not there":        {evidence{Evidence: source.Evidence{Record: peer, Silence: year, Watched: year}, peer: gone7}, source.StateHeld, "and process 7 no longer exists", 5 * glance},
		"legacy peer, just silent":      {evidence{Evidence: source.Evidence{Record: peer, Silence: limboLimit - 1}, peer: gone7, legacy: true}, source.StateHeld, "it is cleared", 10 * time.Millisecond},
		"legacy peer, not watched":      {evidence{Evidence: source.Evidence{Record: peer, Silence: limboLimit, Watched: limboWindow - 1}, peer: gone7, legacy: true}, source.StateSuspect, "watching it for 2s", limboWindow / 6},
		"legacy peer, watched":          {evidence{Evidence: source.Evidence{Record: peer, Silence: limboLimit, Watched: limboWindow}, peer: gone7, legacy: true}, source.StateDead, "process 7", 0},
		"legacy peer, a long max-age":   {evidence{Evidence: source.Evidence{Record: peer, MaxAge: time.Hour, Silence: limboLimit, Watched: limboWindow}, peer: gone7, legacy: true}, source.StateDead, "process 7", 0},
		"legacy peer, a short max-age":  {evidence{Evidence: source.Evidence{Record: peer, MaxAge: time.Second, Silence: time.Second, Watched: time.Second}, peer: gone7, legacy: true}, source.StateDead, "limit of 1s", 0},
		"legacy peer that lives":        {evidence{Evidence: source.Evidence{Record: peer, Silence: year, Watched: year}, peer: alive, legacy: true}, source.StateHeld, "process 7 is running", glance},
		"a long max-age, long window":   {evidence{Evidence: source.Evidence{Record: foreign, MaxAge: year, Silence: year, Watched: tornBeat}}, source.StateSuspect, "watching it for 30.1s", (tornBeat + 100*time.Millisecond) / 6},
	})
}

// An empty file with the mark of one that was not synced: 90 s of silence and 45 s of watching.
func TestJudgeTorn(t *testing.T) {
	r := source.Record{Foreign: errEmptyRecord.Error()}
	const limit, window = 90 * time.Second, 45 * time.Second
	judgeAll(t, map[string]trial{
		"young":          {evidence{Evidence: source.Evidence{Record: r, Silence: limit - time.Second}, torn: true}, source.StateHeld, "its record is empty", time.Second},
		"silent":         {evidence{Evidence: source.Evidence{Record: r, Silence: limit}, torn: true}, source.StateSuspect, "watching it for 45s", window / 6},
		"almost":         {evidence{Evidence: source.Evidence{Record: r, Silence: limit, Watched: window - 1}, torn: true}, source.StateSuspect, "watching it for 45s", window / 6},
		"and watched":    {evidence{Evidence: source.Evidence{Record: r, Silence: limit, Watched: window}, torn: true}, source.StateDead, "limit of 1m30s", 0},
		"max-age longer": {evidence{Evidence: source.Evidence{Record: r, Silence: limit, Watched: window, MaxAge: time.Hour}, torn: true}, source.StateHeld, "its record is empty", 5 * glance},
	})
}

func TestJudgeLimbo(t *testing.T) {
	left := []string{".nfs0001", "job.job", "job.lock"}
	const year = 365 * 24 * time.Hour
	for name, c := range map[string]struct {
		e      evidence
		strays []string
		want   source.State
		why    string
	}{
		"young":           {evidence{Evidence: source.Evidence{Silence: time.Second}}, left, source.StateHeld, "no lock file"},
		"silent":          {evidence{Evidence: source.Evidence{Silence: limboLimit}}, left, source.StateSuspect, "watching it for 2s"},
		"and watched":     {evidence{Evidence: source.Evidence{Silence: limboLimit, Watched: limboWindow}}, left, source.StateDead, "limit of 10s"},
		"empty":           {evidence{Evidence: source.Evidence{Silence: limboLimit, Watched: limboWindow}}, nil, source.StateDead, "limit of 10s"},
		"max-age is moot": {evidence{Evidence: source.Evidence{Silence: limboLimit, Watched: limboWindow, MaxAge: time.Hour}}, left, source.StateDead, "limit of 10s"},
		"foreign":         {evidence{Evidence: source.Evidence{Silence: year, Watched: year, MaxAge: 1}}, append(left, "thesis.txt"), source.StateHeld, "thesis.txt"},
		"another's lock":  {evidence{Evidence: source.Evidence{Silence: year, Watched: year, MaxAge: 1}}, []string{"other.lock"}, source.StateHeld, "other.lock"},
	} {
		t.Run(name, func(t *testing.T) {
			got := judgeLimbo(c.e, c.strays, "job")
			require.Equal(t, c.want.String(), got.State.String(), got.Why)
			require.Contains(t, got.Why, c.why)
		})
	}
}

// How samples have to come of a holder: a slow one proves no silence.
func TestLimitsOfSamples(t *testing.T) {
	require.Equal(t, source.WatchLimits{Slow: 500 * time.Millisecond, Gap: 2 * time.Second}, limitsFor(2*time.Second))
	require.Equal(t, source.WatchLimits{Slow: fastest, Gap: 2 * fastest}, limitsFor(0))
}
