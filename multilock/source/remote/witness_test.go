package remote_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// Missing heartbeats prove nothing about an unknown holder, whatever MaxAge is.
func TestJudgeSomebodyUnknown(t *testing.T) {
	for _, patience := range []time.Duration{0, 1} {
		got := remote.Judge(source.Evidence{Record: source.Record{Foreign: "who?"}, Unchanged: time.Hour, Watched: time.Hour, MaxAge: patience}, patience > 0)
		require.Equal(t, source.StateHeld, got.State)
		require.Contains(t, got.Why, "who?")
		require.Positive(t, got.Next)
	}
}

// TestJudge: the server's clock decides if it has dated the last heartbeat, together with a watch;
// otherwise the observer's clock does.
func TestJudge(t *testing.T) {
	record := source.Record{Token: "t", Claim: source.Claim{Holder: source.Holder{Identity: process.Identity{Host: "far"}}, TTL: 10 * time.Second, Heartbeat: time.Second}}
	for name, c := range map[string]struct {
		silence, unchanged, watched time.Duration
		same                        bool
		want                        source.State
	}{
		"lively":                       {time.Second, 0, 0, true, source.StateHeld},
		"silent, and not watched":      {20 * time.Second, 0, 0, true, source.StateSuspect},
		"silent, and watched":          {20 * time.Second, 2 * time.Second, 2 * time.Second, true, source.StateDead},
		"of another server":            {20 * time.Second, 2 * time.Second, 2 * time.Second, false, source.StateSuspect},
		"of another server, long":      {20 * time.Second, 10 * time.Second, 10 * time.Second, false, source.StateDead},
		"the clock was set back":       {-time.Hour, 2 * time.Second, 2 * time.Second, true, source.StateSuspect},
		"the clock was set back, long": {-time.Hour, 10 * time.Second, 10 * time.Second, true, source.StateDead},
	} {
		e := source.Evidence{Record: record, Silence: c.silence, Unchanged: c.unchanged, Watched: c.watched}
		require.Equal(t, c.want, remote.Judge(e, c.same).State, name)
	}
}
