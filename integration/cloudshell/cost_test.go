package cloudshell_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/fakecloudshell"
	"github.com/multilock/go/multilock"
)

// TestCost checks the calls of each operation. docs/internals/cloudshell.md lists the numbers.
func TestCost(t *testing.T) {
	l := newLab(t, serverOptions())
	src := l.open(t)
	release(t, try(t, src, "MUTEX", multilock.Options{})) // the session, the model and the clock are known now
	var mu sync.Mutex
	var calls []string
	l.server.Inject(func(c fakecloudshell.Call) fakecloudshell.Fault {
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, short(c.Method))
		return fakecloudshell.Fault{}
	})
	cost := func(want string) {
		t.Helper()
		require.Equal(t, want, strings.Join(calls, " "))
		calls = nil
	}
	ctx := context.Background()
	lock := try(t, src, "MUTEX", multilock.Options{})
	cost("list add list add remove")
	require.NoError(t, lock.Verify(ctx))
	cost("add list remove")
	requireHeld(t, src, "MUTEX")
	cost("list")
	release(t, lock)
	cost("list remove add remove")
	lock = try(t, src, "MUTEX", multilock.Options{})
	observer, err := src.Observe(ctx, "MUTEX", multilock.StalePolicy{})
	require.NoError(t, err)
	_, err = observer.Look(ctx)
	require.NoError(t, err)
	calls = nil
	require.NoError(t, observer.Force(ctx))
	cost("add list remove remove add remove")
	require.ErrorIs(t, lock.Release(ctx), multilock.ErrLost)
	calls = nil
	_, err = src.Empty(ctx)
	require.NoError(t, err)
	cost("list")
}

func short(m fakecloudshell.Method) string {
	names := map[fakecloudshell.Method]string{fakecloudshell.GetDetails: "list", fakecloudshell.AddService: "add", fakecloudshell.RemoveServices: "remove"}
	if name, ok := names[m]; ok {
		return name
	}
	return string(m)
}
