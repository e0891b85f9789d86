package mongolock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// known is what is seen of a holder with a TTL of a minute, on another host.
func known(change func(*evidence)) evidence {
	e := evidence{record: source.Record{Token: "t"}}
	e.record.TTL, e.record.Heartbeat = time.Minute, 6*time.Second
	change(&e)
	return e
}

func TestJudge(t *testing.T) {
	const held, suspect, dead = source.StateHeld, source.StateSuspect, source.StateDead
	gone, alive := process.Evidence{Life: process.Gone, Why: "it is gone"}, process.Evidence{Life: process.Alive, Why: "it lives"}
	for name, test := range map[string]struct {
		change func(*evidence)
		want   source.State
	}{
		"seen just now":      {func(*evidence) {}, held},
		"silent for a while": {func(e *evidence) { e.silence, e.unchanged, e.watched = 59*time.Second, 59*time.Second, 59*time.Second }, held},
		"the server's clock alone kills nobody": {func(e *evidence) {
			e.silence, e.unchanged, e.watched = 24*time.Hour, 59*time.Second, 59*time.Second
		}, suspect},
		"watched for the whole ttl":                            {func(e *evidence) { e.silence, e.unchanged, e.watched = time.Minute, time.Minute, time.Minute }, dead},
		"watched for the whole ttl, by a clock that says less": {func(e *evidence) { e.silence, e.unchanged, e.watched = 0, time.Minute, time.Minute }, dead},
		"watched for the whole ttl, without a server's clock": {func(e *evidence) {
			e.silence, e.unchanged, e.watched = source.Unknown, time.Minute, time.Minute
		}, dead},
		"the server was away until just now": {func(e *evidence) { e.silence, e.unchanged, e.watched = time.Hour, time.Hour, 8*time.Second }, suspect},
		"it has been back for a while":       {func(e *evidence) { e.silence, e.unchanged, e.watched = time.Hour, time.Hour, 9*time.Second }, dead},
		"the server's clock was set back":    {func(e *evidence) { e.silence, e.unchanged = -time.Hour, time.Second }, suspect},
		"a patient observer": {func(e *evidence) {
			e.maxAge, e.silence, e.unchanged, e.watched = time.Hour, time.Minute, time.Minute, time.Minute
		}, held},
		"an impatient observer": {func(e *evidence) { e.maxAge, e.unchanged, e.watched = time.Second, 30*time.Second, 30*time.Second }, held},

		"its process is gone":               {func(e *evidence) { e.holder = gone }, dead},
		"its job lives":                     {func(e *evidence) { e.holder, e.record.Job, e.job = gone, true, alive }, held},
		"its job is gone, too":              {func(e *evidence) { e.holder, e.record.Job, e.job = gone, true, gone }, dead},
		"its job was not named yet":         {func(e *evidence) { e.holder, e.record.Job = gone, true }, held},
		"its job lives, and is silent":      {func(e *evidence) { e.job, e.unchanged, e.watched = alive, time.Hour, time.Hour }, held},
		"its process lives, and is silent":  {func(e *evidence) { e.holder, e.unchanged, e.watched = alive, time.Hour, time.Hour }, dead},
		"somebody unknown, for a long time": {func(e *evidence) { e.record.Foreign, e.unchanged, e.watched = "who?", time.Hour, time.Hour }, held},
		"unknown, and somebody has patience": {func(e *evidence) {
			e.record.Foreign, e.unchanged, e.watched, e.maxAge = "who?", time.Hour, time.Hour, 1
		}, held},

		"not renewed, not over":           {func(e *evidence) { e.record.Heartbeat, e.silence = 0, 59*time.Second }, held},
		"not renewed, over, just seen":    {func(e *evidence) { e.record.Heartbeat, e.silence = 0, time.Hour }, suspect},
		"not renewed, over, seen again":   {func(e *evidence) { e.record.Heartbeat, e.silence, e.watched = 0, time.Hour, time.Second }, dead},
		"not renewed, over by our clock":  {func(e *evidence) { e.record.Heartbeat, e.unchanged, e.watched = 0, time.Minute, time.Minute }, dead},
		"not renewed, clock was set back": {func(e *evidence) { e.record.Heartbeat, e.silence = 0, -time.Hour }, held},
	} {
		t.Run(name, func(t *testing.T) {
			verdict := judge(known(test.change))
			require.Equal(t, test.want, verdict.state, verdict.why)
			require.NotEmpty(t, verdict.why)
			if test.want != dead {
				require.Positive(t, verdict.next)
			}
		})
	}
}

// Whoever watches comes often enough for no sample to be missing.
func TestLooksLeaveNoGap(t *testing.T) {
	e := known(func(e *evidence) { e.silence, e.unchanged, e.watched = time.Hour, time.Second, time.Second })
	require.Less(t, judge(e).next, e.record.Heartbeat)
}

// A record with a tiny heartbeat has nobody ask the server without a pause.
func TestLooksLeaveTheServerInPeace(t *testing.T) {
	e := known(func(e *evidence) { e.record.Heartbeat, e.silence = 1, time.Hour })
	require.Equal(t, source.StateSuspect, judge(e).state)
	require.GreaterOrEqual(t, judge(e).next, leastGlance)
}
