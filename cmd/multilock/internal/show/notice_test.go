package show

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/process"
)

// If the reply to a waiter's successful rename was lost, the waiter finds its own lock. The notice does not
// name the waiter itself.
func TestNoticeNamesOthersOnly(t *testing.T) {
	self, err := process.Self()
	require.NoError(t, err)
	locks, err := fslock.Open(fslock.Options{Base: t.TempDir()})
	require.NoError(t, err)
	defer locks.Close()
	lock, err := multilock.TryAcquire(t.Context(), locks, "x", multilock.Options{})
	require.NoError(t, err)
	defer lock.Release(t.Context())

	own := &Obstacle{Src: &place.Source{Locks: locks}, Name: "x", Self: self}
	require.Equal(t, `waiting for lock "x", 5s so far`, own.Tell(t.Context(), 5*time.Second))
	others := &Obstacle{Src: &place.Source{Locks: locks}, Name: "x"}
	require.Contains(t, others.Tell(t.Context(), 5*time.Second), "; it is held by")
}

// An error that prevents attempts takes precedence over the lock's holder.
func TestNoticeTellsOfTrouble(t *testing.T) {
	way := &Obstacle{Name: "x"}
	way.Met(errors.New("the disk is full"))
	require.Equal(t, `waiting for lock "x", 5s so far, and for this to pass: the disk is full`, way.Tell(t.Context(), 5*time.Second))
}

// The message about an unreadable result names the result.
func TestFailureThatCannotBeRead(t *testing.T) {
	for name, want := range map[string]string{
		"page7":     `job "page7" failed: its result cannot be understood: it is truncated`,
		"#jobs-1-4": `jobs 1 to 4 failed: its result "#jobs-1-4" cannot be understood: it is truncated`,
	} {
		require.Equal(t, want, Failure{Name: name, Unreadable: "it is truncated"}.Sentence())
	}
}
