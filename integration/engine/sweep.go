package engine

import (
	"maps"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/source"
)

// Trouble is a fault of several requests in a row.
type Trouble struct {
	Outcome Outcome
	Times   int
}

// Sweep runs each operation of a holder, a breaker, a reader and a register's user with a fault at its
// first request, then at its second, and so on until it has no such request. Afterwards the reported
// result must match what is in the server. bench returns the bench for a fault at the n-th request.
func Sweep(t *testing.T, more map[string]Trouble, bench func(t testing.TB, what Trouble, n int) *locktest.Bench) {
	troubles := map[string]Trouble{
		"dropped": {Dropped, 1}, "dropped twice": {Dropped, 2}, "lost": {Lost, 1}, "lost thrice": {Lost, 3}, "zombie": {Zombie, 1}, "broken": {Broken, 1},
	}
	maps.Copy(troubles, more)
	operations := locktest.Operations("first acquire", "acquire", "be refused", "renew", "release", "break", "force", "take over", "commit", "commit again", "forget",
		"mark the job", "fence", "learn the outcome", "publish", "retract", "record", "read")
	for name, what := range troubles {
		for _, op := range append(operations, swapping()) {
			t.Run(op.Name+"/"+name, func(t *testing.T) {
				t.Parallel()
				op.Sweep(t, func(n int) *locktest.Bench { return bench(t, what, n) })
			})
		}
	}
}

func swapping() locktest.Operation {
	return locktest.Swapping(func(b *locktest.Bench) source.Register {
		register, err := b.Struck.(source.Registrar).Register("cell")
		require.NoError(b, err)
		return register
	})
}

// Bench returns a bench that injects a fault into what.Times requests, starting with the n-th. The
// operation must hide the fault from its caller.
func Bench(t testing.TB, proxy interface {
	Inject(fault func(n int, method string) Outcome)
	Land()
}, what Trouble, n int,
) *locktest.Bench {
	t.Helper()
	dead := Claim(Long)
	dead.Holder.Identity = Dead(t)
	var hit atomic.Bool
	return &locktest.Bench{
		TB: t, Name: "nightly", Claim: Claim(Long), Dead: dead, Taken: func(string) {}, Hidden: true,
		Strike: func() {
			proxy.Inject(func(i int, _ string) Outcome {
				if i < n || i >= n+what.Times {
					return Done
				}
				hit.Store(true)
				return what.Outcome
			})
		},
		Calm: func() bool {
			proxy.Inject(nil)
			return hit.Load()
		},
		Land: sync.OnceFunc(proxy.Land),
	}
}
