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

// Watchdog ends what would otherwise hang for ever. No test depends on it.
const Watchdog = 2 * time.Minute

// Long is a TTL that does not pass during a test.
const Long = time.Hour

// Main runs a package's tests, most of which wait, or plays the part of another process.
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

// Within bounds what a test does.
func Within(tb testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), Watchdog)
	tb.Cleanup(cancel)
	return ctx
}

// Claim is that of a holder with a TTL.
func Claim(ttl time.Duration) source.Claim { return source.Claim{TTL: ttl, Heartbeat: ttl / 10} }

// Dead is a process of this host that has ended.
func Dead(tb testing.TB) process.Identity {
	tb.Helper()
	self, err := process.Self()
	require.NoError(tb, err)
	self.Start++
	return self
}

// Source is what such a source can do.
type Source interface {
	source.Source
	source.Registrar
}

// Engine is a server, as what is tried everywhere sees it.
type Engine struct {
	// Open opens a group in a place, over these hosts.
	Open func(tb testing.TB, hosts, place, group string) Source
	// Unused is a place that nobody has used.
	Unused func() string
	// Hosts are those of the server.
	Hosts string
	// Odd are names that it might take for something else.
	Odd []string
}

func (e Engine) fixture() locktest.Fixture {
	return locktest.Fixture{
		Fences: true, Odd: append([]string{"tab\tand\nnewline", "a.b", "%2F", strings.Repeat("\u20ac", 166)}, e.Odd...),
		Refused: []string{"a/b", "/", "nul\x00byte", "\xff\xfe not utf-8", strings.Repeat("x", 501)},
	}
}

// Conformance runs what each source has to pass, over the hosts of the server.
func (e Engine) Conformance(t *testing.T, group string, distant bool) {
	f := e.fixture()
	f.Marks, f.Deaths, f.Distant = true, true, distant
	f.Place = func(testing.TB) func() multilock.Source {
		place := e.Unused()
		return func() multilock.Source { return e.Open(t, e.Hosts, place, group) }
	}
	locktest.Run(t, f)
}

// Cooking is the conformance of cooking locks with registers in the server, and of these.
func (e Engine) Cooking(t *testing.T) {
	place := e.Unused()
	locktest.RunRegister(t, func(t testing.TB, name string) source.Register { return e.register(t, e.Hosts, place, name) })
	f := e.fixture()
	f.TTL = 2 * time.Second // so that a busy machine is not too slow for a swap
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

// RegisterCost counts requests over other hosts: a look is one, and a swap after it another one, also
// for who was not the last to swap.
func (e Engine) RegisterCost(t *testing.T, counted string, asked func() int) {
	place := e.Unused()
	near, far := e.register(t, e.Hosts, place, "cell"), e.register(t, counted, place, "cell")
	_, _, err := near.Swap(t.Context(), []byte("first")) // makes the place
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
	require.Equal(t, 2, asked()-before, "one to be told of the other's")
}
