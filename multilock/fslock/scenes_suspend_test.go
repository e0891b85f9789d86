//go:build linux

package fslock_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
)

// A holder that is stopped for longer than its TTL is taken over, also by a
// neighbour who sees that its process exists. When it goes on it knows.
func TestSuspendedHolderIsTakenOverAndKnows(t *testing.T) {
	for view, who := range views(t) {
		t.Run(view, func(t *testing.T) {
			t.Parallel()
			base := fresh(t)
			holder := newNeighbour(t, setting{}, order{Base: base})
			holder.must(t, order{Do: "acquire", Name: "job", TTL: 2 * time.Second})
			holder.Signal(t, syscall.SIGSTOP)
			successor := acquire(t, open(t, fslock.Options{Base: base, Self: who}), "job", multilock.Options{TTL: long})

			holder.Signal(t, syscall.SIGCONT)
			for _, do := range []string{"cause", "verify", "fence", "release"} {
				require.Contains(t, holder.do(t, order{Do: do}).Is, "lost", do)
			}
			require.Zero(t, holder.do(t, order{Do: "remaining"}).Remaining)
			require.Contains(t, holder.do(t, order{Do: "release"}).Is, "released")

			require.NoError(t, successor.Verify(t.Context()))
			require.NoError(t, successor.Release(t.Context()))
		})
	}
}
