package locktest_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	. "github.com/multilock/go/multilock/locktest"
)

// A note names the lock, and says of a belief when it ends: no later than the lock
// itself says, if that is asked after the note and the clock after that.
func TestNotesOfALock(t *testing.T) {
	src, err := fslock.Open(fslock.Options{Base: t.TempDir()})
	require.NoError(t, err)
	lock, err := multilock.TryAcquire(t.Context(), src, "nightly", multilock.Options{TTL: time.Hour})
	require.NoError(t, err)
	var file bytes.Buffer
	r := NewRecorder(&file, "a")
	require.NoError(t, r.Note(lock, Acquired, 7))
	require.NoError(t, r.Note(lock, Releasing, 0))
	remaining := lock.Remaining()
	latest := Now() + remaining
	require.NoError(t, lock.Release(t.Context()))
	require.NoError(t, src.Close())
	require.ErrorIs(t, r.Note(lock, Renewed, 0), multilock.ErrLost, "it is not held any more")

	events, err := ReadEvents(&file)
	require.NoError(t, err)
	require.Len(t, events, 2)
	acquired, releasing := events[0], events[1]
	want := Event{Proc: "a", Kind: Acquired, Name: "nightly", Token: lock.Record().Token, Start: 7, Time: acquired.Time, Until: acquired.Until}
	require.Equal(t, want, acquired)
	require.Greater(t, acquired.Until, acquired.Time)
	require.LessOrEqual(t, acquired.Until, latest)
	want.Kind, want.Start, want.Time, want.Until = Releasing, 0, releasing.Time, 0
	require.Equal(t, want, releasing)
}
