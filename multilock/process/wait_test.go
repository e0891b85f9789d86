package process_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/process"
)

// waiting returns a channel for the result of Wait.
func waiting(ctx context.Context, id, me process.Identity) <-chan error {
	result := make(chan error, 1)
	go func() { result <- id.Wait(ctx, me) }()
	return result
}

func TestWaitForTheEnd(t *testing.T) {
	me, child := self(t), sitter(t)
	id := find(t, child.Process.Pid)
	first, second := waiting(t.Context(), id, me), waiting(t.Context(), id, me)
	child.End()
	require.NoError(t, <-first)
	require.NoError(t, <-second)
	require.NoError(t, id.Wait(t.Context(), me), "it has ended before")
}

func TestWaitEndsWithItsContext(t *testing.T) {
	me := self(t)
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	result := waiting(ctx, me, me)
	cancel(why)
	require.ErrorIs(t, <-result, why)
	require.ErrorIs(t, me.Wait(ctx, me), why, "it was over before")
}

func TestWaitRefusesWhatItCannotSee(t *testing.T) {
	me := self(t)
	id := me
	id.Namespace = "pid:[1]"
	require.ErrorContains(t, id.Wait(t.Context(), me), "another pid namespace")
	id.PID = 0
	require.ErrorContains(t, id.Wait(t.Context(), me), "not the number of a process")
}
