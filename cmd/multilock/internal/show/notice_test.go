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

// A waiter whose rename was carried out, though the reply is lost, finds its own lock in
// place: it is not told that it waits for itself.
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

// What keeps the lock from being tried comes before who holds it.
func TestNoticeTellsOfTrouble(t *testing.T) {
	way := &Obstacle{Name: "x"}
	way.Met(errors.New("the disk is full"))
	require.Equal(t, `waiting for lock "x", 5s so far, and for this to pass: the disk is full`, way.Tell(t.Context(), 5*time.Second))
}

// Who has to see to a result that nobody can read is told what it is called.
func TestFailureThatCannotBeRead(t *testing.T) {
	for name, want := range map[string]string{
		"page7":     `job "page7" failed: its result cannot be understood: its end is missing`,
		"#jobs-1-4": `jobs 1 to 4 failed: its result "#jobs-1-4" cannot be understood: its end is missing`,
	} {
		require.Equal(t, want, Failure{Name: name, Foreign: "its end is missing"}.Sentence())
	}
}
