package postgres_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/pglab"
	"github.com/multilock/go/internal/testkit/actor"
	"github.com/multilock/go/internal/testkit/worker"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/pglock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// watchdog ends what would otherwise hang for ever. No test depends on it.
const watchdog = 2 * time.Minute

// long is a TTL that does not pass during a test.
const long = time.Hour

func TestMain(m *testing.M) {
	actor.Play(map[string]func() error{"worker": playWorker})
	if err := flag.Set("test.parallel", "8"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	flag.Parse()
	code := m.Run()
	pglab.RemoveTemplate()
	os.Exit(code)
}

func playWorker() error {
	return worker.Play(func(url string, self process.Identity) (source.Source, error) {
		return pglock.Open(pglock.Options{Place: pglock.Place{URL: url}, Self: self})
	})
}

var places atomic.Int64

// schema is one that nobody has used.
func schema() string { return fmt.Sprint("locks", places.Add(1)) }

func open(tb testing.TB, hosts, schema, group string) *pglock.Source {
	tb.Helper()
	return openWith(tb, pglock.Options{Place: pglock.Place{URL: pglab.URL(hosts, "schema="+schema)}, Group: group})
}

func openURL(tb testing.TB, url string) *pglock.Source {
	tb.Helper()
	return openWith(tb, pglock.Options{Place: pglock.Place{URL: url}})
}

func openWith(tb testing.TB, opt pglock.Options) *pglock.Source {
	tb.Helper()
	src, err := pglock.Open(opt)
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = src.Close() })
	return src
}

func within(tb testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	tb.Cleanup(cancel)
	return ctx
}

func claim(ttl time.Duration) source.Claim { return source.Claim{TTL: ttl, Heartbeat: ttl / 10} }

func fixture(hosts func() string, group string) locktest.Fixture {
	return locktest.Fixture{
		Fences: true, Marks: true, Deaths: true,
		Odd:     []string{"tab\tand\nnewline", "a.b", "%2F", "$1", "@lock", "{a,b}", "it's", strings.Repeat("\u20ac", 166)},
		Refused: []string{"a/b", "/", "nul\x00byte", "\xff\xfe not utf-8", strings.Repeat("x", 501)},
		Place: func(t testing.TB) func() multilock.Source {
			p := schema()
			return func() multilock.Source { return open(t, hosts(), p, group) }
		},
	}
}

func TestConformance(t *testing.T) {
	s := pglab.Start(t, pglab.Options{})
	direct := func() string { return s.Address }
	t.Run("no group", func(t *testing.T) { locktest.Run(t, fixture(direct, "")) })
	if testing.Short() {
		return
	}
	t.Run("a group", func(t *testing.T) { locktest.Run(t, fixture(direct, "nightly jobs")) })
	t.Run("far away", func(t *testing.T) {
		proxy := pglab.NewProxy(t, s.Address, 50*time.Millisecond)
		f := fixture(func() string { return proxy.Address }, "")
		f.Distant = true
		locktest.Run(t, f)
	})
}
