package remote_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// Of somebody unknown no silence proves anything, and patience says nothing.
func TestJudgeSomebodyUnknown(t *testing.T) {
	for _, patience := range []time.Duration{0, 1} {
		got := remote.Judge(source.Evidence{Record: source.Record{Foreign: "who?"}, Unchanged: time.Hour, Watched: time.Hour, MaxAge: patience})
		require.Equal(t, source.StateHeld, got.State)
		require.Contains(t, got.Why, "who?")
		require.Positive(t, got.Next)
	}
}

// The server's clock alone kills nobody.
func TestJudgeByTheServersClock(t *testing.T) {
	r := source.Record{Token: "t", Claim: source.Claim{TTL: time.Minute, Heartbeat: 6 * time.Second}}
	got := remote.Judge(source.Evidence{Record: r, Silence: 24 * time.Hour, Unchanged: 59 * time.Second, Watched: 59 * time.Second})
	require.Equal(t, source.StateSuspect, got.State, got.Why)
}
