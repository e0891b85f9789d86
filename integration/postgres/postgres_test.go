package postgres_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/engine"
	"github.com/multilock/go/integration/pglab"
	"github.com/multilock/go/internal/testkit/worker"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/pglock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

const (
	watchdog = engine.Watchdog
	long     = engine.Long
)

func TestMain(m *testing.M) {
	engine.Main(m, map[string]func() error{"worker": playWorker}, pglab.RemoveTemplate)
}

func playWorker() error {
	return worker.Play(func(url string, self process.Identity) (source.Source, error) {
		return pglock.Open(pglock.Options{Place: pglock.Place{URL: url}, Self: self})
	})
}

var places atomic.Int64

// schema returns a schema that was never used.
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

// makeSchema creates the schema by using a lock for the first time.
func makeSchema(tb testing.TB, src multilock.Source) {
	tb.Helper()
	require.NoError(tb, multilock.Do(within(tb), src, "first", multilock.Options{}, func(context.Context) error { return nil }))
}

// under returns this server for the tests that all servers share.
func under(s *pglab.Server) engine.Engine {
	return engine.Engine{
		Hosts: s.Address, Unused: schema, Odd: []string{"$1", "@lock", "{a,b}", "it's"},
		Open: func(tb testing.TB, hosts, place, group string) engine.Source { return open(tb, hosts, place, group) },
	}
}

func TestConformance(t *testing.T) {
	s := pglab.Start(t, pglab.Options{})
	e := under(s)
	t.Run("no group", func(t *testing.T) { e.Conformance(t, "", false) })
	if testing.Short() {
		return
	}
	t.Run("a group", func(t *testing.T) { e.Conformance(t, "nightly jobs", false) })
	t.Run("far away", func(t *testing.T) {
		e := e
		e.Hosts = pglab.NewProxy(t, s.Address, 50*time.Millisecond).Address
		e.Conformance(t, "", true)
	})
}

func TestCooking(t *testing.T) {
	s := pglab.Start(t, pglab.Options{})
	under(s).Cooking(t)
	proxy := pglab.NewProxy(t, s.Address, 0)
	under(s).RegisterCost(t, proxy.Address, proxy.Requests)
}

func within(tb testing.TB) context.Context { return engine.Within(tb) }

func claim(ttl time.Duration) source.Claim { return engine.Claim(ttl) }
