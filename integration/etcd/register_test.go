package etcd_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/etcdlab"
	"github.com/multilock/go/multilock/cooklock"
	"github.com/multilock/go/multilock/etcdlock"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/source"
)

func register(tb testing.TB, src *etcdlock.Source, name string) source.Register {
	tb.Helper()
	register, err := src.Register(name)
	require.NoError(tb, err)
	return register
}

func TestRegister(t *testing.T) {
	c := etcdlab.Start(t, 1)
	place := prefix()
	locktest.RunRegister(t, func(t testing.TB, name string) source.Register {
		return register(t, open(t, c.Hosts(), place, ""), name)
	})
}

// TestCooking is the conformance of cooking locks with registers here.
func TestCooking(t *testing.T) {
	c := etcdlab.Start(t, 1)
	locktest.Run(t, locktest.Fixture{
		TTL: 2 * time.Second, Fences: true,
		Odd:     []string{"tab\tand\nnewline", "a.b", "%2F", strings.Repeat("\u20ac", 166)},
		Refused: []string{"a/b", "/", "nul\x00byte", "\xff\xfe not utf-8", strings.Repeat("x", 501)},
		Timed: func(t testing.TB, period time.Duration) func() source.Source {
			place := prefix()
			return func() source.Source {
				on := open(t, c.Hosts(), place, "")
				src, err := cooklock.New(cooklock.Options{Open: on.Register, Names: on.Registers, Period: period})
				require.NoError(t, err)
				return src
			}
		},
	})
}

// TestRegisterCost counts requests: a look is one, and a swap after it another one, also for who was
// not the last to swap.
func TestRegisterCost(t *testing.T) {
	c := etcdlab.Start(t, 1)
	place := prefix()
	proxy := etcdlab.NewProxy(t, c.Members[0].Client, 0)
	near := register(t, open(t, c.Hosts(), place, ""), "cell")
	far := register(t, open(t, proxy.Address, place, ""), "cell")
	asked := func() int { return proxy.Counts().All() }
	_, _, err := far.Peek(t.Context()) // connects
	require.NoError(t, err)
	for _, value := range []string{"a", "b", "c"} {
		_, _, err = near.Swap(t.Context(), []byte(value))
		require.NoError(t, err)
		before := asked()
		_, _, err = far.Peek(t.Context())
		require.NoError(t, err)
		old, _, err := far.Swap(t.Context(), []byte("far "+value))
		require.NoError(t, err)
		require.Equal(t, value, string(old))
		require.Equal(t, 2, asked()-before)
	}
	before := asked()
	_, _, err = near.Swap(t.Context(), []byte("between"))
	require.NoError(t, err)
	old, _, err := far.Swap(t.Context(), []byte("last"))
	require.NoError(t, err)
	require.Equal(t, "between", string(old))
	require.Equal(t, 2, asked()-before, "one to be told of the other's")
}
