//go:build linux

package fslock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// The same interleaving with ours: whoever breaks, breaks what it judged.
func TestSlowBreakerCannotReachAFreshLock(t *testing.T) {
	for view, who := range views(t) {
		t.Run(view, func(t *testing.T) {
			t.Parallel()
			base := fresh(t)
			killHolder(t, base, "job", order{TTL: 2 * time.Second})
			fast, slow := deadInEyesOf(t, base, who), deadInEyesOf(t, base, who)

			require.NoError(t, fast.Break(t.Context()))
			successor := acquire(t, open(t, fslock.Options{Base: base}), "job", multilock.Options{TTL: long})
			require.NoError(t, slow.Break(t.Context()), "what it judged dead is gone")
			require.NoError(t, successor.Verify(t.Context()))

			seen := look(t, slow)
			require.Equal(t, source.StateHeld.String(), seen.State.String())
			require.Equal(t, successor.Record().Token, seen.Record.Token)
			require.ErrorIs(t, slow.Break(t.Context()), source.ErrHeld)
			require.NoError(t, successor.Release(t.Context()))
		})
	}
}

// killHolder leaves the lock of a process behind that was killed.
func killHolder(t *testing.T, base, name string, how order) {
	t.Helper()
	holder := newNeighbour(t, setting{}, order{Base: base})
	how.Do, how.Name = "acquire", name
	holder.must(t, how)
	holder.End()
}

// deadInEyesOf is an observer who has seen that the lock "job" is dead.
func deadInEyesOf(t *testing.T, base string, who process.Identity) source.Observer {
	t.Helper()
	o := observe(t, open(t, fslock.Options{Base: base, Self: who}), "job", source.Patience{})
	lookUntil(t, o, source.StateDead, nil)
	return o
}
