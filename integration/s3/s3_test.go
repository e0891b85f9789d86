// Package s3_test tests locks in a bucket on a real server, versitygw.
package s3_test

import (
	"flag"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/engine"
	"github.com/multilock/go/integration/s3lab"
	"github.com/multilock/go/internal/fakes3"
	"github.com/multilock/go/internal/testkit/worker"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/s3lock"
	"github.com/multilock/go/multilock/source"
)

var longStress = flag.Bool("long", false, "the long form of the stress tests: ten minutes for each fault")

func TestMain(m *testing.M) {
	engine.Main(m, map[string]func() error{"worker": playWorker}, s3lab.RemoveProgram)
}

func playWorker() error {
	return worker.Play(func(url string, self process.Identity) (source.Source, error) {
		return s3lock.Open(s3lock.Options{Place: s3lock.Place{URL: url}, Self: self})
	})
}

var places atomic.Int64

// prefix returns a prefix that was never used.
func prefix() string { return fmt.Sprint("jobs", places.Add(1)) }

func open(tb testing.TB, address, prefix, group string) *s3lock.Source {
	tb.Helper()
	src, err := s3lock.Open(s3lock.Options{Place: s3lock.Place{URL: s3lab.URL(address, prefix)}, Group: group})
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = src.Close() })
	return src
}

// fixture describes a gateway to the conformance tests.
func fixture(g *s3lab.Gateway, group string) locktest.Fixture {
	return locktest.Fixture{
		Fences: true, Marks: true, Deaths: true, Distant: true, TTL: 3 * time.Second,
		Odd:     []string{"=", "+", "a+", "%41", strings.Repeat("+", 250)},
		Refused: []string{"a/b", "nul\x00byte", "\xff\xfe not utf-8", strings.Repeat("+", 400)},
		Place: func(t testing.TB) func() source.Source {
			place := g.Place(prefix())
			return func() source.Source { return open(t, g.Address, place, group) }
		},
	}
}

func TestConformance(t *testing.T) {
	g := s3lab.Start(t)
	t.Run("no group", func(t *testing.T) { locktest.Run(t, fixture(g, "")) })
	place := g.Place(prefix())
	locktest.RunRegister(t, func(t testing.TB, name string) source.Register {
		r, err := open(t, g.Address, place, "").Register(name)
		require.NoError(t, err)
		return r
	})
	if testing.Short() {
		return
	}
	t.Run("a group", func(t *testing.T) { locktest.Run(t, fixture(g, "nightly jobs")) })
	t.Run("versioned", func(t *testing.T) { locktest.Run(t, fixture(s3lab.Start(t, "--versioning-dir", t.TempDir()), "")) })
}

// TestSweep runs each operation with each fault at each of its requests, every time below a new prefix.
func TestSweep(t *testing.T) {
	g := s3lab.Start(t)
	engine.Sweep(t, map[string]engine.Trouble{"torn": {Outcome: engine.Torn, Times: 1}, "repeated": {Outcome: engine.Repeated, Times: 1}}, func(t testing.TB, what engine.Trouble, n int) *locktest.Bench {
		proxy, place := s3lab.NewProxy(t, g.Address), g.Place(prefix())
		b := engine.Bench(t, proxy, what, n)
		b.Struck, b.Other = open(t, proxy.Address, place, ""), open(t, g.Address, place, "")
		b.Token = func() string { return token(t, g, place) }
		b.Gone = func() {}
		return b
	})
}

// token returns the token of the stored lock, "" if there is no lock.
func token(t testing.TB, g *s3lab.Gateway, place string) string {
	t.Helper()
	token, err := fakes3.Holder(string(g.Get(place + "/lock/=/nightly")))
	require.NoError(t, err)
	return token
}
