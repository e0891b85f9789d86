package engine

import (
	"context"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/testkit/actor"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/cooklock"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// Watchdog stops a test that would otherwise hang. No test depends on its length.
const Watchdog = 2 * time.Minute

// Long is a TTL that does not expire during a test.
const Long = time.Hour

// Main runs a package's tests, or plays the part of another process. Most tests only wait, so many run
// in parallel.
func Main(m *testing.M, parts map[string]func() error, after func()) {
	actor.Play(parts)
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	flag.Parse()
	code := m.Run()
	after()
	os.Exit(code)
}

// Within returns a context that bounds a test.
func Within(tb testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), Watchdog)
	tb.Cleanup(cancel)
	return ctx
}

// Claim returns a holder's claim with this TTL.
func Claim(ttl time.Duration) source.Claim { return source.Claim{TTL: ttl, Heartbeat: ttl / 10} }

// Dead returns the identity of a process of this host that has ended.
func Dead(tb testing.TB) process.Identity {
	tb.Helper()
	self, err := process.Self()
	require.NoError(tb, err)
	self.Start++
	return self
}

// Source is what a source on a server implements.
type Source interface {
	source.Source
	source.Registrar
}

// Engine describes a server to the tests that all servers share.
type Engine struct {
	// Open opens a group at a place on these hosts.
	Open func(tb testing.TB, hosts, place, group string) Source
	// Unused returns a place that was never used.
	Unused func() string
	// Hosts are the server's addresses.
	Hosts string
	// Odd are lock names that the server might misinterpret.
	Odd []string
}

func (e Engine) fixture() locktest.Fixture {
	return locktest.Fixture{
		Fences: true, Odd: append([]string{"tab\tand\nnewline", "a.b", "%2F", strings.Repeat("\u20ac", 166)}, e.Odd...),
		Refused: []string{"a/b", "/", "nul\x00byte", "\xff\xfe not utf-8", strings.Repeat("x", 501)},
	}
}

// Conformance runs the conformance tests for sources on the server.
func (e Engine) Conformance(t *testing.T, group string, distant bool) {
	f := e.fixture()
	f.Marks, f.Deaths, f.Distant = true, true, distant
	f.Place = func(testing.TB) func() multilock.Source {
		place := e.Unused()
		return func() multilock.Source { return e.Open(t, e.Hosts, place, group) }
	}
	locktest.Run(t, f)
}

// Cooking runs the conformance tests for registers on the server, and for cooking locks that use them.
func (e Engine) Cooking(t *testing.T) {
	place := e.Unused()
	locktest.RunRegister(t, func(t testing.TB, name string) source.Register { return e.register(t, e.Hosts, place, name) })
	f := e.fixture()
	f.TTL = 2 * time.Second // a swap must fit even on a busy machine
	f.Timed = func(t testing.TB, period time.Duration) func() source.Source {
		place := e.Unused()
		return func() source.Source {
			on := e.Open(t, e.Hosts, place, "")
			src, err := cooklock.New(cooklock.Options{Open: on.Register, Names: on.Registers, Period: period})
			require.NoError(t, err)
			return src
		}
	}
	locktest.Run(t, f)
}

func (e Engine) register(tb testing.TB, hosts, place, name string) source.Register {
	tb.Helper()
	register, err := e.Open(tb, hosts, place, "").Register(name)
	require.NoError(tb, err)
	return register
}

// RegisterCost counts requests through a counting proxy: a peek costs one, and the swap after it one
// more, even if another client made the last swap.
func (e Engine) RegisterCost(t *testing.T, counted string, asked func() int) {
	place := e.Unused()
	near, far := e.register(t, e.Hosts, place, "cell"), e.register(t, counted, place, "cell")
	_, _, err := near.Swap(t.Context(), []byte("first")) // creates the place
	require.NoError(t, err)
	_, _, err = far.Peek(t.Context()) // connects
	require.NoError(t, err)
	swap := func(r source.Register, value, want string) {
		old, _, err := r.Swap(t.Context(), []byte(value))
		require.NoError(t, err)
		require.Equal(t, want, string(old))
	}
	last := "first"
	for _, value := range []string{"a", "b", "c"} {
		swap(near, value, last)
		before := asked()
		_, _, err = far.Peek(t.Context())
		require.NoError(t, err)
		swap(far, "far "+value, value)
		require.Equal(t, 2, asked()-before)
		last = "far " + value
	}
	swap(near, "between", last)
	before := asked()
	swap(far, "last", "between")
	require.Equal(t, 2, asked()-before, "one more to learn of the other client's swap")
}
