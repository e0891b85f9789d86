package etcd_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/engine"
	"github.com/multilock/go/integration/etcdlab"
	"github.com/multilock/go/internal/testkit/worker"
	"github.com/multilock/go/multilock/etcdlock"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

const (
	watchdog = engine.Watchdog
	long     = engine.Long
)

func TestMain(m *testing.M) {
	engine.Main(m, map[string]func() error{etcdlab.Role: etcdlab.PlayMember, "worker": playWorker}, func() {})
}

func playWorker() error {
	return worker.Play(func(urls string, self process.Identity) (source.Source, error) {
		here, there, apart := strings.Cut(urls, " ")
		if apart && strings.HasPrefix(self.Host, "host") { // the worker pretends to be on another host
			here = there
		}
		return etcdlock.Open(etcdlock.Options{Place: etcdlock.Place{URL: here}, Self: self})
	})
}

var places atomic.Int64

// prefix returns a prefix that was never used.
func prefix() string { return fmt.Sprint("locks", places.Add(1)) }

func open(tb testing.TB, hosts, prefix, group string) *etcdlock.Source {
	tb.Helper()
	src, err := etcdlock.Open(etcdlock.Options{Place: etcdlock.Place{URL: "etcd://" + hosts + "/" + prefix}, Group: group})
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = src.Close() })
	return src
}

// under returns this cluster for the tests that all servers share.
func under(c *etcdlab.Cluster) engine.Engine {
	return engine.Engine{Hosts: c.Hosts(), Unused: prefix, Open: func(tb testing.TB, hosts, place, group string) engine.Source { return open(tb, hosts, place, group) }}
}

// TestConformance uses three members.
func TestConformance(t *testing.T) {
	c := etcdlab.Start(t, 3)
	e := under(c)
	t.Run("no group", func(t *testing.T) { e.Conformance(t, "", false) })
	if testing.Short() {
		return
	}
	t.Run("a group", func(t *testing.T) { e.Conformance(t, "nightly jobs", false) })
	t.Run("far away", func(t *testing.T) {
		e := e
		e.Hosts = etcdlab.NewProxy(t, c.Members[0].Client, 50*time.Millisecond).Address
		e.Conformance(t, "", true)
	})
}

func TestCooking(t *testing.T) {
	c := etcdlab.Start(t, 1)
	under(c).Cooking(t)
	proxy := etcdlab.NewProxy(t, c.Members[0].Client, 0)
	under(c).RegisterCost(t, proxy.Address, func() int { return proxy.Counts().All() })
}

// TestSweep runs each operation with each fault at each of its requests, every time below a new prefix.
func TestSweep(t *testing.T) {
	c := etcdlab.Start(t, 1)
	engine.Sweep(t, map[string]engine.Trouble{"denied": {Outcome: engine.Denied, Times: 1}}, func(t testing.TB, what engine.Trouble, n int) *locktest.Bench {
		proxy, place := etcdlab.NewProxy(t, c.Members[0].Client, 0), prefix()
		b := engine.Bench(t, proxy, what, n)
		b.Struck, b.Other = open(t, proxy.Address, place, ""), open(t, c.Hosts(), place, "")
		b.Token = func() string { return token(t, c, place) }
		b.Gone = func() { // no heartbeat and no ticket is left
			require.Zero(t, c.Count(t, place+"/life//nightly"))
			require.Zero(t, c.Count(t, place+"/wait//nightly/"))
		}
		return b
	})
}

// token returns the token of the stored lock, "" if there is no lock.
func token(t testing.TB, c *etcdlab.Cluster, place string) string {
	t.Helper()
	resp, err := c.Client.Get(within(t), place+"/lock//nightly")
	require.NoError(t, err)
	if len(resp.Kvs) == 0 {
		return ""
	}
	var record struct{ Token string }
	require.NoError(t, json.Unmarshal(resp.Kvs[0].Value, &record))
	return record.Token
}

func within(tb testing.TB) context.Context { return engine.Within(tb) }

func claim(ttl time.Duration) source.Claim { return engine.Claim(ttl) }
