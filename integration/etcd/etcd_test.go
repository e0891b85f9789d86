package etcd_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/etcdlab"
	"github.com/multilock/go/internal/testkit/actor"
	"github.com/multilock/go/internal/testkit/worker"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/etcdlock"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// watchdog ends what would otherwise hang for ever. No test depends on it.
const watchdog = 2 * time.Minute

// long is a TTL that does not pass during a test.
const long = time.Hour

func TestMain(m *testing.M) {
	actor.Play(map[string]func() error{etcdlab.Role: etcdlab.PlayMember, "worker": playWorker})
	if err := flag.Set("test.parallel", "8"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func playWorker() error {
	return worker.Play(func(urls string, self process.Identity) (source.Source, error) {
		here, there, apart := strings.Cut(urls, " ")
		if apart && strings.HasPrefix(self.Host, "host") { // it plays to be on another one
			here = there
		}
		return etcdlock.Open(etcdlock.Options{Place: etcdlock.Place{URL: here}, Self: self})
	})
}

var places atomic.Int64

// prefix is one that nobody has used.
func prefix() string { return fmt.Sprint("locks", places.Add(1)) }

func open(tb testing.TB, hosts, prefix, group string) *etcdlock.Source {
	tb.Helper()
	src, err := etcdlock.Open(etcdlock.Options{Place: etcdlock.Place{URL: "etcd://" + hosts + "/" + prefix}, Group: group})
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
		Odd:     []string{"tab\tand\nnewline", "a.b", "%2F", strings.Repeat("\u20ac", 166)},
		Refused: []string{"a/b", "/", "nul\x00byte", "\xff\xfe not utf-8", strings.Repeat("x", 501)},
		Place: func(t testing.TB) func() multilock.Source {
			p := prefix()
			return func() multilock.Source { return open(t, hosts(), p, group) }
		},
	}
}

// TestConformance is on three members.
func TestConformance(t *testing.T) {
	c := etcdlab.Start(t, 3)
	t.Run("no group", func(t *testing.T) { locktest.Run(t, fixture(c.Hosts, "")) })
	if testing.Short() {
		return
	}
	t.Run("a group", func(t *testing.T) { locktest.Run(t, fixture(c.Hosts, "nightly jobs")) })
	t.Run("far away", func(t *testing.T) {
		proxy := etcdlab.NewProxy(t, c.Members[0].Client, 50*time.Millisecond)
		f := fixture(func() string { return proxy.Address }, "")
		f.Distant = true
		locktest.Run(t, f)
	})
}

// TestSweep does what a holder, a breaker or a reader does, with a fault at the first request,
// then at the second, and so on until there is no such request. What was said must be true of
// what is in the store then.
func TestSweep(t *testing.T) {
	operations := locktest.Operations("first acquire", "acquire", "be refused", "renew", "release", "break", "force", "take over", "commit", "commit again", "forget",
		"mark the job", "fence", "learn the outcome", "publish", "retract", "record", "read")
	c := etcdlab.Start(t, 1)
	for name, trouble := range map[string]trouble{
		"dropped": {etcdlab.Dropped, 1}, "dropped twice": {etcdlab.Dropped, 2}, "lost": {etcdlab.Lost, 1}, "lost thrice": {etcdlab.Lost, 3}, "zombie": {etcdlab.Zombie, 1}, "broken": {etcdlab.Broken, 1},
		"denied": {etcdlab.Denied, 1},
	} {
		for _, op := range operations {
			t.Run(op.Name+"/"+name, func(t *testing.T) {
				t.Parallel()
				op.Sweep(t, func(n int) *locktest.Bench { return newStage(t, c, trouble, n).bench() })
			})
		}
		t.Run("swap/"+name, func(t *testing.T) {
			t.Parallel()
			swap := locktest.Swapping(func(b *locktest.Bench) source.Register { return register(b.TB, b.Struck.(*etcdlock.Source), "cell") })
			swap.Sweep(t, func(n int) *locktest.Bench { return newStage(t, c, trouble, n).bench() })
		})
	}
}

type trouble struct {
	outcome etcdlab.Outcome
	times   int
}

// stage is a prefix of its own, and one fault.
type stage struct {
	testing.TB
	cluster *etcdlab.Cluster
	proxy   *etcdlab.Proxy
	prefix  string
	n       int
	what    trouble
	hit     atomic.Bool
}

func newStage(t testing.TB, c *etcdlab.Cluster, what trouble, n int) *stage {
	return &stage{TB: t, cluster: c, proxy: etcdlab.NewProxy(t, c.Members[0].Client, 0), prefix: prefix(), n: n, what: what}
}

func (s *stage) bench() *locktest.Bench {
	dead := claim(long)
	dead.Holder.Identity = deadIdentity(s)
	return &locktest.Bench{
		TB: s, Name: "nightly", Struck: open(s, s.proxy.Address, s.prefix, ""), Other: open(s, s.cluster.Hosts(), s.prefix, ""), Claim: claim(long), Dead: dead,
		Strike: s.arm, Calm: s.disarm, Land: sync.OnceFunc(s.proxy.Land), Token: s.token, Taken: func(string) {}, Gone: s.gone, Hidden: true,
	}
}

func (s *stage) arm() {
	s.proxy.Inject(func(n int, _ string) etcdlab.Outcome {
		if n < s.n || n >= s.n+s.what.times {
			return etcdlab.Done
		}
		s.hit.Store(true)
		return s.what.outcome
	})
}

func (s *stage) disarm() bool {
	s.proxy.Inject(nil)
	return s.hit.Load()
}

// token is whose the lock is in the store, "" if nobody's.
func (s *stage) token() string {
	resp, err := s.cluster.Client.Get(within(s), s.prefix+"/lock//nightly")
	require.NoError(s, err)
	if len(resp.Kvs) == 0 {
		return ""
	}
	var record struct{ Token string }
	require.NoError(s, json.Unmarshal(resp.Kvs[0].Value, &record))
	return record.Token
}

// gone: nobody's sign of life and nobody's ticket is left.
func (s *stage) gone() {
	for _, key := range []string{"/life//nightly", "/wait//nightly/"} {
		resp, err := s.cluster.Client.Get(within(s), s.prefix+key)
		require.NoError(s, err)
		require.Empty(s, resp.Kvs, key)
	}
}

// deadIdentity is a process of this host that has ended.
func deadIdentity(tb testing.TB) process.Identity {
	tb.Helper()
	self, err := process.Self()
	require.NoError(tb, err)
	self.Start++
	return self
}
