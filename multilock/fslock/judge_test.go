package fslock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

var (
	alive   = process.Evidence{Life: process.Alive, Why: "process 7 is running on this host"}
	gone7   = process.Evidence{Life: process.Gone, Why: "process 7 no longer exists"}
	noJob   = process.Evidence{Life: process.Gone, Why: "no process carries the lock's token"}
	hidden  = process.Evidence{Life: process.Unknown, Why: "process 8 may not be looked into"}
	unknown = process.Evidence{Life: process.Unknown, Why: "runs on another host"}
)

// written is a record of ours: a TTL of a minute, a heartbeat of six seconds.
func written(change func(*source.Record)) source.Record {
	r := source.Record{Name: "job", Token: "t", Claim: source.Claim{TTL: time.Minute, Heartbeat: 6 * time.Second}}
	if change != nil {
		change(&r)
	}
	return r
}

func withJob(r *source.Record)  { r.Job = true }
func detached(r *source.Record) { r.Heartbeat = 0 }

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
	require.Equal(t, c.want.String(), got.state.String(), got.why)
	require.Contains(t, got.why, c.why)
	require.Equal(t, c.next, got.next)
}

func judgeAll(t *testing.T, trials map[string]trial) {
	t.Helper()
	for name, c := range trials {
		t.Run(name, func(t *testing.T) { c.judge(t) })
	}
}

// What this host knows of processes comes before all silence.
func TestJudgeByProcesses(t *testing.T) {
	const quiet, over = 10 * time.Second, 2 * time.Minute
	judgeAll(t, map[string]trial{
		"gone at once": {evidence{record: written(nil), holder: gone7}, source.StateDead, "no longer exists", 0},
		"gone, and no clock to be read": {
			evidence{record: written(nil), holder: gone7, silence: source.Unknown}, source.StateDead, "no longer exists", 0},
		"gone, and a max-age that is not over": {
			evidence{record: written(nil), holder: gone7, silence: quiet, maxAge: time.Hour}, source.StateDead, "no longer exists", 0},
		"gone with its job": {
			evidence{record: written(withJob), holder: gone7, job: noJob}, source.StateDead, "process 7 no longer exists, and no process carries", 0},
		"gone, and nobody can tell whether its job is": {
			evidence{record: written(withJob), holder: gone7, job: hidden, silence: quiet}, source.StateHeld, "ttl of 1m0s, and process 7 no longer exists, and process 8", glance},
		"gone and silent, and nobody can tell whether its job lives": {
			evidence{record: written(withJob), holder: gone7, job: hidden, silence: over, unchanged: quiet, watched: quiet}, source.StateDead, "no sign of life for 2m0s", 0},
		"gone, job alive beyond the ttl": {
			evidence{record: written(withJob), holder: gone7, job: alive, silence: over, unchanged: over, watched: over}, source.StateHeld, "its job lives", glance},
		"alive": {evidence{record: written(nil), holder: alive, silence: quiet}, source.StateHeld, "is running", glance},
		"alive, but silent beyond its ttl": {
			evidence{record: written(nil), holder: alive, silence: over, unchanged: quiet, watched: quiet}, source.StateDead, "no sign of life for 2m0s", 0},
		"alive and silent, its job gone": {
			evidence{record: written(withJob), holder: alive, job: gone7, silence: quiet}, source.StateHeld, "is running", glance},
		"a token-less record proves nothing by its pid": {
			evidence{record: source.Record{}, holder: gone7, job: gone7}, source.StateHeld, "Python MultiLock", 5 * glance},
	})
}

// The TTL that the holder trusts, and the window of one and a half heartbeats.
func TestJudgeBySilence(t *testing.T) {
	const quiet, over, window = 10 * time.Second, 61 * time.Second, 9 * time.Second
	r := written(nil)
	judgeAll(t, map[string]trial{
		"heard of lately": {evidence{record: r, holder: unknown, silence: quiet}, source.StateHeld, "another host", 5 * glance},
		"about to be silent for too long": {
			evidence{record: r, holder: unknown, silence: time.Minute - time.Second}, source.StateHeld, "another host", time.Second},
		"just before": {
			evidence{record: r, holder: unknown, silence: time.Minute - time.Nanosecond}, source.StateHeld, "another host", 10 * time.Millisecond},
		"at the limit, not watched":    {evidence{record: r, holder: unknown, silence: time.Minute}, source.StateSuspect, "watching it for 9s", window / 6},
		"over, watched for too short":  {evidence{record: r, holder: unknown, silence: over, watched: window - 1}, source.StateSuspect, "limit of 1m0s", window / 6},
		"over, watched for the window": {evidence{record: r, holder: unknown, silence: over, watched: window}, source.StateDead, "while it was watched for 9s", 0},
		"its own watch says it alone": {
			evidence{record: r, holder: unknown, silence: source.Unknown, unchanged: over, watched: window}, source.StateDead, "no sign of life for 1m1s", 0},
		"no clock, watched for too short": {
			evidence{record: r, holder: unknown, silence: source.Unknown, unchanged: quiet, watched: quiet}, source.StateHeld, "another host", 5 * glance},
		"an outage: long unchanged, not watched": {
			evidence{record: r, holder: unknown, silence: over, unchanged: over}, source.StateSuspect, "watching it", window / 6},
	})
}

// Max-age can prolong a TTL, and nothing else.
func TestJudgeMaxAgeOfALockWithATTL(t *testing.T) {
	const over, watched = 2 * time.Minute, 10 * time.Second
	r := written(nil)
	judgeAll(t, map[string]trial{
		"shorter than the ttl": {evidence{record: r, holder: unknown, silence: 30 * time.Second, watched: watched, maxAge: time.Second}, source.StateHeld, "ttl", 5 * glance},
		"longer, not over":     {evidence{record: r, holder: unknown, silence: over, watched: watched, maxAge: time.Hour}, source.StateHeld, "ttl", 5 * glance},
		"longer, over":         {evidence{record: r, holder: unknown, silence: over, watched: watched, maxAge: 90 * time.Second}, source.StateDead, "limit of 1m30s", 0},
	})
}

// A lock that nobody renews is silent from the start.
func TestJudgeDetached(t *testing.T) {
	r, short := written(detached), written(func(r *source.Record) { r.Heartbeat, r.TTL = 0, time.Second })
	judgeAll(t, map[string]trial{
		"within its ttl":    {evidence{record: r, holder: unknown, silence: 30 * time.Second}, source.StateHeld, "held for 1m0s without being renewed", 5 * glance},
		"over, not watched": {evidence{record: r, holder: unknown, silence: time.Minute}, source.StateSuspect, "watching it for 1s", silentWindow / 6},
		"over and watched":  {evidence{record: r, holder: unknown, silence: time.Minute, watched: silentWindow}, source.StateDead, "limit of 1m0s", 0},
		"a short one":       {evidence{record: short, holder: unknown, silence: time.Second, watched: 100 * time.Millisecond}, source.StateDead, "limit of 1s", 0},
	})
}

// Without a TTL only the caller can say for how long silence is no proof.
func TestJudgeWithoutATTL(t *testing.T) {
	foreign, peer := source.Record{Foreign: "the lock file is torn"}, peerRecord("host", 7)
	const year, window = 365 * 24 * time.Hour, 6*time.Second + silentWindow/10
	judgeAll(t, map[string]trial{
		"foreign, for ever":             {evidence{record: foreign, silence: year, unchanged: year, watched: year}, source.StateHeld, "torn; it has no ttl", 5 * glance},
		"peer, for ever":                {evidence{record: peer, silence: year, unchanged: year, watched: year}, source.StateHeld, "Python MultiLock; it has no ttl", 5 * glance},
		"foreign, max-age not over":     {evidence{record: foreign, maxAge: time.Minute, silence: 30 * time.Second}, source.StateHeld, "torn", 5 * glance},
		"peer, max-age not watched":     {evidence{record: peer, maxAge: time.Minute, silence: time.Minute, watched: window - 1}, source.StateSuspect, "watching it for 6.1s", window / 6},
		"newer, max-age over":           {evidence{strange: strange{ours: true}, maxAge: time.Minute, silence: time.Minute, watched: window}, source.StateDead, "limit of 1m0s", 0},
		"peer, max-age over":            {evidence{record: peer, maxAge: time.Minute, silence: time.Minute, watched: window}, source.StateDead, "limit of 1m0s", 0},
		"peer that lives, max-age over": {evidence{record: peer, peer: alive, maxAge: time.Minute, silence: year, watched: year}, source.StateHeld, "process 7 is running on this host", glance},
		"peer that is not there":        {evidence{record: peer, peer: gone7, silence: year, watched: year}, source.StateHeld, "and process 7 no longer exists", 5 * glance},
		"legacy peer, just silent":      {evidence{record: peer, peer: gone7, legacy: true, silence: limboLimit - 1}, source.StateHeld, "it is cleared", 10 * time.Millisecond},
		"legacy peer, not watched":      {evidence{record: peer, peer: gone7, legacy: true, silence: limboLimit, watched: limboWindow - 1}, source.StateSuspect, "watching it for 2s", limboWindow / 6},
		"legacy peer, watched":          {evidence{record: peer, peer: gone7, legacy: true, silence: limboLimit, watched: limboWindow}, source.StateDead, "process 7", 0},
		"legacy peer, a long max-age":   {evidence{record: peer, peer: gone7, legacy: true, maxAge: time.Hour, silence: limboLimit, watched: limboWindow}, source.StateDead, "process 7", 0},
		"legacy peer, a short max-age":  {evidence{record: peer, peer: gone7, legacy: true, maxAge: time.Second, silence: time.Second, watched: time.Second}, source.StateDead, "limit of 1s", 0},
		"legacy peer that lives":        {evidence{record: peer, peer: alive, legacy: true, silence: year, watched: year}, source.StateHeld, "process 7 is running", glance},
		"a long max-age, long window":   {evidence{record: foreign, maxAge: year, silence: year, watched: tornBeat}, source.StateSuspect, "watching it for 30.1s", (tornBeat + silentWindow/10) / 6},
	})
}

// An empty file with the mark of one that was not synced: 90 s of silence and 45 s of watching.
func TestJudgeTorn(t *testing.T) {
	r := source.Record{Foreign: errEmptyRecord.Error()}
	const limit, window = 90 * time.Second, 45 * time.Second
	judgeAll(t, map[string]trial{
		"young":          {evidence{record: r, torn: true, silence: limit - time.Second}, source.StateHeld, "its record is empty", time.Second},
		"silent":         {evidence{record: r, torn: true, silence: limit}, source.StateSuspect, "watching it for 45s", window / 6},
		"almost":         {evidence{record: r, torn: true, silence: limit, watched: window - 1}, source.StateSuspect, "watching it for 45s", window / 6},
		"and watched":    {evidence{record: r, torn: true, silence: limit, watched: window}, source.StateDead, "limit of 1m30s", 0},
		"max-age longer": {evidence{record: r, torn: true, silence: limit, watched: window, maxAge: time.Hour}, source.StateHeld, "its record is empty", 5 * glance},
	})
}

// A server clock that was set back puts signs of life into the future.
func TestJudgeServerClockSetBack(t *testing.T) {
	r := written(nil)
	const ahead, window = -time.Hour, 9 * time.Second
	judgeAll(t, map[string]trial{
		"not watched long enough": {evidence{record: r, holder: unknown, silence: ahead, unchanged: 30 * time.Second, watched: 30 * time.Second}, source.StateSuspect, "set back", window / 6},
		"watched for a whole ttl": {evidence{record: r, holder: unknown, silence: ahead, unchanged: time.Minute, watched: time.Minute}, source.StateDead, "no sign of life for 1m0s", 0},
		"within a clock's grain":  {evidence{record: r, holder: unknown, silence: -clockSlack}, source.StateHeld, "another host", 5 * glance},
		"clock cannot be read":    {evidence{record: r, holder: unknown, silence: source.Unknown}, source.StateHeld, "another host", 5 * glance},
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
		"young":           {evidence{silence: time.Second}, left, source.StateHeld, "no lock file"},
		"silent":          {evidence{silence: limboLimit}, left, source.StateSuspect, "watching it for 2s"},
		"and watched":     {evidence{silence: limboLimit, watched: limboWindow}, left, source.StateDead, "limit of 10s"},
		"empty":           {evidence{silence: limboLimit, watched: limboWindow}, nil, source.StateDead, "limit of 10s"},
		"max-age is moot": {evidence{silence: limboLimit, watched: limboWindow, maxAge: time.Hour}, left, source.StateDead, "limit of 10s"},
		"foreign":         {evidence{silence: year, watched: year, maxAge: 1}, append(left, "thesis.txt"), source.StateHeld, "thesis.txt"},
		"another's lock":  {evidence{silence: year, watched: year, maxAge: 1}, []string{"other.lock"}, source.StateHeld, "other.lock"},
	} {
		t.Run(name, func(t *testing.T) {
			got := judgeLimbo(c.e, c.strays, "job")
			require.Equal(t, c.want.String(), got.state.String(), got.why)
			require.Contains(t, got.why, c.why)
		})
	}
}

// How samples have to come of a holder: a slow one proves no silence.
func TestLimitsOfSamples(t *testing.T) {
	require.Equal(t, source.WatchLimits{Slow: 500 * time.Millisecond, Gap: 2 * time.Second}, limitsFor(2*time.Second))
	require.Equal(t, source.WatchLimits{Slow: fastest, Gap: 2 * fastest}, limitsFor(0))
}
