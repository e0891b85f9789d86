package process_test

import (
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/testkit/actor"
	"github.com/multilock/go/multilock/process"
)

func TestMain(m *testing.M) {
	actor.Play(roles())
	if err := adoptOrphans(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// sit reports that it runs and stays until its input ends.
func sit() error {
	fmt.Println("{}")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// sitter returns a running process.
func sitter(t *testing.T) *actor.Actor {
	t.Helper()
	a := actor.Prepare(t, "sit", nil)
	a.Start(t)
	hear[struct{}](t, a)
	return a
}

// hear returns the next message of an actor.
func hear[T any](t *testing.T, a *actor.Actor) (told T) {
	t.Helper()
	a.Hear(t, &told)
	return told
}

func self(t testing.TB) process.Identity {
	t.Helper()
	id, err := process.Self()
	require.NoError(t, err)
	return id
}

func find(t *testing.T, pid int) process.Identity {
	t.Helper()
	id, err := process.Find(pid)
	require.NoError(t, err)
	return id
}

func requireLife(t *testing.T, want process.Life, got process.Evidence) {
	t.Helper()
	require.Equal(t, want.String(), got.Life.String(), got.Why)
	require.NotEmpty(t, got.Why)
}
