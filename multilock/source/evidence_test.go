package source_test

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

// written is a record of multilock: a TTL of a minute, a heartbeat of six seconds.
func written(change func(*source.Record)) source.Record {
	r := source.Record{Name: "job", Token: "t", Claim: source.Claim{TTL: time.Minute, Heartbeat: 6 * time.Second}}
	if change != nil {
		change(&r)
	}
	return r
}

func withJob(r *source.Record)  { r.Job = true }
func detached(r *source.Record) { r.Heartbeat = 0 }

const near = time.Second

// trial is evidence, and the expected assessment.
type trial struct {
	source.Evidence
	want source.State
	why  string
	next time.Duration
}

func judgeAll(t *testing.T, trials map[string]trial) {
	t.Helper()
	for name, c := range trials {
		t.Run(name, func(t *testing.T) {
			got := c.Judge(source.Rules{Near: near, Far: 5 * near})
			require.Equal(t, c.want.String(), got.State.String(), got.Why)
			require.Contains(t, got.Why, c.why)
			require.Equal(t, c.next, got.Next)
		})
	}
}

// What this host knows of processes takes precedence over missing heartbeats.
func TestJudgeByProcesses(t *testing.T) {
	const quiet, over = 10 * time.Second, 2 * time.Minute
	judgeAll(t, map[string]trial{
		"gone at once": {source.Evidence{Record: written(nil), Holder: gone7}, source.StateDead, "no longer exists", 0},
		"gone, and no clock to be read": {
			source.Evidence{Record: written(nil), Holder: gone7, Silence: source.Unknown}, source.StateDead, "no longer exists", 0},
		"gone, and a max-age that is not over": {
			source.Evidence{Record: written(nil), Holder: gone7, Silence: quiet, MaxAge: time.Hour}, source.StateDead, "no longer exists", 0},
		"gone with its job": {
			source.Evidence{Record: written(withJob), Holder: gone7, Job: noJob}, source.StateDead, "process 7 no longer exists, and no process carries", 0},
		"gone, and nobody can tell whether its job is": {
			source.Evidence{Record: written(withJob), Holder: gone7, Job: hidden, Silence: quiet}, source.StateHeld, "ttl of 1m0s has not passed, and process 7 no longer exists, and process 8", near},
		"gone and silent, and nobody can tell whether its job lives": {
			source.Evidence{Record: written(withJob), Holder: gone7, Job: hidden, Silence: over, Unchanged: quiet, Watched: quiet}, source.StateDead, "no heartbeat for 2m0s", 0},
		"gone, job alive beyond the ttl": {
			source.Evidence{Record: written(withJob), Holder: gone7, Job: alive, Silence: over, Unchanged: over, Watched: over}, source.StateHeld, "its job lives", near},
		"alive": {source.Evidence{Record: written(nil), Holder: alive, Silence: quiet}, source.StateHeld, "is running", near},
		"alive, but silent beyond its ttl": {
			source.Evidence{Record: written(nil), Holder: alive, Silence: over, Unchanged: quiet, Watched: quiet}, source.StateDead, "no heartbeat for 2m0s", 0},
		"alive and silent, its job gone": {
			source.Evidence{Record: written(withJob), Holder: alive, Job: gone7, Silence: quiet}, source.StateHeld, "is running", near},
	})
}

// The limit is the TTL that the holder relies on, and the window one and a half heartbeats.
func TestJudgeBySilence(t *testing.T) {
	const quiet, over, window = 10 * time.Second, 61 * time.Second, 9 * time.Second
	r := written(nil)
	judgeAll(t, map[string]trial{
		"heard of lately": {source.Evidence{Record: r, Holder: unknown, Silence: quiet}, source.StateHeld, "another host", 5 * near},
		"about to be silent for too long": {
			source.Evidence{Record: r, Holder: unknown, Silence: time.Minute - time.Second}, source.StateHeld, "another host", time.Second},
		"just before": {
			source.Evidence{Record: r, Holder: unknown, Silence: time.Minute - time.Nanosecond}, source.StateHeld, "another host", 10 * time.Millisecond},
		"at the limit, not watched":    {source.Evidence{Record: r, Holder: unknown, Silence: time.Minute}, source.StateSuspect, "watching it for 9s", window / 6},
		"over, watched for too short":  {source.Evidence{Record: r, Holder: unknown, Silence: over, Watched: window - 1}, source.StateSuspect, "limit of 1m0s", window / 6},
		"over, watched for the window": {source.Evidence{Record: r, Holder: unknown, Silence: over, Watched: window}, source.StateDead, "while it was watched for 9s", 0},
		"its own watch says it alone": {
			source.Evidence{Record: r, Holder: unknown, Silence: source.Unknown, Unchanged: over, Watched: window}, source.StateDead, "no heartbeat for 1m1s", 0},
		"no clock, watched for too short": {
			source.Evidence{Record: r, Holder: unknown, Silence: source.Unknown, Unchanged: quiet, Watched: quiet}, source.StateHeld, "another host", 5 * near},
		"an outage: long unchanged, not watched": {
			source.Evidence{Record: r, Holder: unknown, Silence: over, Unchanged: over}, source.StateSuspect, "watching it", window / 6},
	})
}

// MaxAge can prolong a TTL, but not shorten it.
func TestJudgeMaxAgeOfALockWithATTL(t *testing.T) {
	const over, watched = 2 * time.Minute, 10 * time.Second
	r := written(nil)
	judgeAll(t, map[string]trial{
		"shorter than the ttl": {source.Evidence{Record: r, Holder: unknown, Silence: 30 * time.Second, Watched: watched, MaxAge: time.Second}, source.StateHeld, "ttl", 5 * near},
		"longer, not over":     {source.Evidence{Record: r, Holder: unknown, Silence: over, Watched: watched, MaxAge: time.Hour}, source.StateHeld, "ttl", 5 * near},
		"longer, over":         {source.Evidence{Record: r, Holder: unknown, Silence: over, Watched: watched, MaxAge: 90 * time.Second}, source.StateDead, "limit of 1m30s", 0},
	})
}

// A lock without heartbeats only has the heartbeat of its acquisition.
func TestJudgeDetached(t *testing.T) {
	r, short := written(detached), written(func(r *source.Record) { r.Heartbeat, r.TTL = 0, time.Second })
	judgeAll(t, map[string]trial{
		"within its ttl":    {source.Evidence{Record: r, Holder: unknown, Silence: 30 * time.Second}, source.StateHeld, "held for 1m0s without being renewed", 5 * near},
		"over, not watched": {source.Evidence{Record: r, Holder: unknown, Silence: time.Minute}, source.StateSuspect, "watching it for 1s", time.Second / 6},
		"over and watched":  {source.Evidence{Record: r, Holder: unknown, Silence: time.Minute, Watched: time.Second}, source.StateDead, "limit of 1m0s", 0},
		"a short one":       {source.Evidence{Record: short, Holder: unknown, Silence: time.Second, Watched: 100 * time.Millisecond}, source.StateDead, "limit of 1s", 0},
	})
}

// A server clock that was set back puts heartbeats into the future.
func TestJudgeServerClockSetBack(t *testing.T) {
	r := written(nil)
	const ahead, window = -time.Hour, 9 * time.Second
	judgeAll(t, map[string]trial{
		"not watched long enough": {source.Evidence{Record: r, Holder: unknown, Silence: ahead, Unchanged: 30 * time.Second, Watched: 30 * time.Second}, source.StateSuspect, "set back", window / 6},
		"watched for a whole ttl": {source.Evidence{Record: r, Holder: unknown, Silence: ahead, Unchanged: time.Minute, Watched: time.Minute}, source.StateDead, "no heartbeat for 1m0s", 0},
		"within a clock's grain":  {source.Evidence{Record: r, Holder: unknown, Silence: -time.Second}, source.StateHeld, "another host", 5 * near},
		"clock cannot be read":    {source.Evidence{Record: r, Holder: unknown, Silence: source.Unknown}, source.StateHeld, "another host", 5 * near},
	})
}

// known is the evidence for a holder with a TTL of a minute, on another host.
func known(change func(*source.Evidence)) source.Evidence {
	e := source.Evidence{Record: source.Record{Token: "t"}}
	e.Record.TTL, e.Record.Heartbeat = time.Minute, 6*time.Second
	change(&e)
	return e
}

func TestJudgeByTheObserversClock(t *testing.T) {
	const held, suspect, dead = source.StateHeld, source.StateSuspect, source.StateDead
	gone := gone7
	for name, test := range map[string]struct {
		change func(*source.Evidence)
		want   source.State
	}{
		"seen just now": {func(*source.Evidence) {}, held},
		"silent for a while": {func(e *source.Evidence) {
			e.Silence, e.Unchanged, e.Watched = 59*time.Second, 59*time.Second, 59*time.Second
		}, held},
		"the server's clock alone kills nobody": {func(e *source.Evidence) {
			e.Silence, e.Unchanged, e.Watched = 24*time.Hour, 59*time.Second, 59*time.Second
		}, suspect},
		"watched for the whole ttl":                            {func(e *source.Evidence) { e.Silence, e.Unchanged, e.Watched = time.Minute, time.Minute, time.Minute }, dead},
		"watched for the whole ttl, by a clock that says less": {func(e *source.Evidence) { e.Silence, e.Unchanged, e.Watched = 0, time.Minute, time.Minute }, dead},
		"watched for the whole ttl, without a server's clock": {func(e *source.Evidence) {
			e.Silence, e.Unchanged, e.Watched = source.Unknown, time.Minute, time.Minute
		}, dead},
		"the server was away until just now": {func(e *source.Evidence) { e.Silence, e.Unchanged, e.Watched = time.Hour, time.Hour, 8*time.Second }, suspect},
		"it has been back for a while":       {func(e *source.Evidence) { e.Silence, e.Unchanged, e.Watched = time.Hour, time.Hour, 9*time.Second }, dead},
		"the server's clock was set back":    {func(e *source.Evidence) { e.Silence, e.Unchanged = -time.Hour, time.Second }, suspect},
		"a patient observer": {func(e *source.Evidence) {
			e.MaxAge, e.Silence, e.Unchanged, e.Watched = time.Hour, time.Minute, time.Minute, time.Minute
		}, held},
		"an impatient observer": {func(e *source.Evidence) {
			e.MaxAge, e.Unchanged, e.Watched = time.Second, 30*time.Second, 30*time.Second
		}, held},

		"its process is gone":              {func(e *source.Evidence) { e.Holder = gone }, dead},
		"its job lives":                    {func(e *source.Evidence) { e.Holder, e.Record.Job, e.Job = gone, true, alive }, held},
		"its job is gone, too":             {func(e *source.Evidence) { e.Holder, e.Record.Job, e.Job = gone, true, gone }, dead},
		"its job was not named yet":        {func(e *source.Evidence) { e.Holder, e.Record.Job = gone, true }, held},
		"its job lives, and is silent":     {func(e *source.Evidence) { e.Job, e.Unchanged, e.Watched = alive, time.Hour, time.Hour }, held},
		"its process lives, and is silent": {func(e *source.Evidence) { e.Holder, e.Unchanged, e.Watched = alive, time.Hour, time.Hour }, dead},

		"not renewed, not over":           {func(e *source.Evidence) { e.Record.Heartbeat, e.Silence = 0, 59*time.Second }, held},
		"not renewed, over, just seen":    {func(e *source.Evidence) { e.Record.Heartbeat, e.Silence = 0, time.Hour }, suspect},
		"not renewed, over, seen again":   {func(e *source.Evidence) { e.Record.Heartbeat, e.Silence, e.Watched = 0, time.Hour, time.Second }, dead},
		"not renewed, over by our clock":  {func(e *source.Evidence) { e.Record.Heartbeat, e.Unchanged, e.Watched = 0, time.Minute, time.Minute }, dead},
		"not renewed, clock was set back": {func(e *source.Evidence) { e.Record.Heartbeat, e.Silence = 0, -time.Hour }, held},
	} {
		t.Run(name, func(t *testing.T) {
			assessment := known(test.change).Judge(source.Rules{Near: near, Far: 5 * near, OwnClock: true})
			require.Equal(t, test.want, assessment.State, assessment.Why)
			require.NotEmpty(t, assessment.Why)
			if test.want != dead {
				require.Positive(t, assessment.Next)
			}
		})
	}
}

// If any host's clock may have dated the heartbeats, their times prove nothing: the observer has to
// see the whole limit pass, for every lock.
func TestSilenceWhereHostsDateIt(t *testing.T) {
	for _, heartbeat := range []time.Duration{0, 6 * time.Second} {
		for _, told := range []time.Duration{-time.Hour, 0, time.Hour} {
			e := known(func(e *source.Evidence) { e.Record.Heartbeat, e.Silence = heartbeat, told })
			e.Unchanged, e.Watched = 59*time.Second, 59*time.Second
			want := source.StateHeld // no watch is required for a lock without heartbeats
			if heartbeat > 0 && told != 0 {
				want = source.StateSuspect
			}
			require.Equal(t, want, e.Judge(source.Rules{NoClock: true}).State, "told %s", told)
			e.Unchanged, e.Watched = time.Minute, time.Minute
			require.Equal(t, source.StateDead, e.Judge(source.Rules{NoClock: true}).State, "told %s", told)
		}
	}
}

// A lock without heartbeats gets no new time after the clock was set back: it is held, and not
// watched for its whole TTL.
func TestUnrenewedWhenTheClockWasSetBack(t *testing.T) {
	got := source.Evidence{Record: written(detached), Silence: -time.Hour}.Judge(source.Rules{Near: near, Far: 5 * near})
	require.Equal(t, source.StateHeld, got.State, got.Why)
}

// The next look at a suspect is soon enough for the maximum gap between samples, and a record with
// a tiny heartbeat interval does not cause a busy loop.
func TestWatchingLooks(t *testing.T) {
	e := source.Evidence{Record: written(nil), Silence: time.Hour}
	require.Less(t, e.Judge(source.Rules{}).Next, e.Record.Heartbeat)
	e.Record.Heartbeat = 1
	require.Equal(t, source.StateSuspect, e.Judge(source.Rules{OwnClock: true}).State)
	require.GreaterOrEqual(t, e.Judge(source.Rules{OwnClock: true}).Next, 10*time.Millisecond)
}

// A probe's Gone counts only for a holder of which this host knows nothing, and which has missed a
// heartbeat; its other replies never count.
func TestJudgeByAProbe(t *testing.T) {
	const late, quiet = 9 * time.Second, 8 * time.Second
	yes := process.Evidence{Life: process.Gone, Why: "its batch job is over"}
	cases := map[string]struct {
		source.Evidence
		rules source.Rules
		dead  bool
	}{
		"by the server's clock":       {source.Evidence{Record: written(withJob), Holder: unknown, Silence: late}, source.Rules{}, true},
		"by the observer's own":       {source.Evidence{Record: written(nil), Holder: unknown, Silence: source.Unknown, Unchanged: late}, source.Rules{}, true},
		"not silent":                  {source.Evidence{Record: written(withJob), Holder: unknown, Silence: quiet}, source.Rules{}, false},
		"by a clock that is not one":  {source.Evidence{Record: written(nil), Holder: unknown, Silence: late}, source.Rules{NoClock: true}, false},
		"by one of several clocks":    {source.Evidence{Record: written(nil), Holder: unknown, Silence: late}, source.Rules{OwnClock: true}, false},
		"and times with a step":       {source.Evidence{Record: written(nil), Holder: unknown, Silence: late, Grain: time.Second}, source.Rules{}, false},
		"of a holder that lives here": {source.Evidence{Record: written(nil), Holder: alive, Silence: late}, source.Rules{}, false},
		"of a job that lives here":    {source.Evidence{Record: written(withJob), Holder: unknown, Job: alive, Silence: late}, source.Rules{}, false},
		"of one that nobody renews":   {source.Evidence{Record: written(detached), Holder: unknown, Silence: late}, source.Rules{}, false},
		"of no record of ours":        {source.Evidence{Holder: unknown, Silence: late}, source.Rules{}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.Probed = yes
			got, certain := c.JudgeProcesses(c.rules)
			require.Equal(t, c.dead, certain && got.State == source.StateDead, got.Why)
			for _, life := range []process.Life{process.Unknown, process.Alive} {
				c.Probed.Life = life
				got, _ = c.JudgeProcesses(c.rules)
				require.NotEqual(t, source.StateDead, got.State)
			}
		})
	}
}

func TestBatchJobOf(t *testing.T) {
	cases := map[string]struct {
		environ map[string]string
		want    source.BatchJob
	}{
		"none":                             {nil, source.BatchJob{}},
		"slurm":                            {map[string]string{"SLURM_JOB_ID": "7", "SLURM_CLUSTER_NAME": "c", "SLURMD_NODENAME": "n1"}, source.BatchJob{System: "slurm", ID: "7", Cluster: "c", Node: "n1"}},
		"pbs":                              {map[string]string{"PBS_JOBID": "7.server"}, source.BatchJob{System: "pbs", ID: "7.server"}},
		"lsf":                              {map[string]string{"LSB_JOBID": "7"}, source.BatchJob{System: "lsf", ID: "7"}},
		"sge":                              {map[string]string{"JOB_ID": "7", "SGE_ROOT": "/sge"}, source.BatchJob{System: "sge", ID: "7"}},
		"a variable that others have, too": {map[string]string{"JOB_ID": "7"}, source.BatchJob{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, source.BatchJobOf(func(name string) string { return c.environ[name] }))
		})
	}
}
