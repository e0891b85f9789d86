package postgres_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/pglab"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/pglock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// TestSweep does what a holder, a breaker or a reader does, with a fault at the first request, then
// at the second, and so on until there is no such request. What was said must be true of what is in
// the database then.
func TestSweep(t *testing.T) {
	operations := locktest.Operations("first acquire", "acquire", "be refused", "renew", "release", "break", "force", "take over", "commit", "commit again", "forget",
		"mark the job", "fence", "learn the outcome", "publish", "retract", "record", "read")
	s := pglab.Start(t, pglab.Options{Settings: map[string]string{"max_connections": "500"}})
	for name, trouble := range map[string]trouble{
		"dropped": {pglab.Dropped, 1}, "dropped twice": {pglab.Dropped, 2}, "lost": {pglab.Lost, 1}, "lost thrice": {pglab.Lost, 3}, "zombie": {pglab.Zombie, 1},
		"broken": {pglab.Broken, 1}, "cut": {pglab.Cut, 1}, "torn": {pglab.Torn, 1}, "torn twice": {pglab.Torn, 2},
	} {
		for _, op := range operations {
			t.Run(op.Name+"/"+name, func(t *testing.T) {
				t.Parallel()
				op.Sweep(t, func(n int) *locktest.Bench { return newStage(t, s, trouble, n).bench() })
			})
		}
		t.Run("swap/"+name, func(t *testing.T) {
			t.Parallel()
			swap := locktest.Swapping(func(b *locktest.Bench) source.Register { return register(b.TB, b.Struck.(*pglock.Source), "cell") })
			swap.Sweep(t, func(n int) *locktest.Bench { return newStage(t, s, trouble, n).bench() })
		})
	}
}

type trouble struct {
	outcome pglab.Outcome
	times   int
}

// stage is a group of its own, and one fault.
type stage struct {
	testing.TB
	server *pglab.Server
	proxy  *pglab.Proxy
	group  string
	n      int
	what   trouble
	hit    atomic.Bool
}

func newStage(t testing.TB, s *pglab.Server, what trouble, n int) *stage {
	return &stage{TB: t, server: s, proxy: pglab.NewProxy(t, s.Address, 0), group: schema(), n: n, what: what}
}

func (s *stage) bench() *locktest.Bench {
	dead := claim(long)
	dead.Holder.Identity = deadIdentity(s)
	struck, other := open(s, s.proxy.Address, pglock.DefaultSchema, s.group), open(s, s.server.Address, pglock.DefaultSchema, s.group)
	_, err := other.Names(within(s)) // makes the schema
	require.NoError(s, err)
	return &locktest.Bench{
		TB: s, Name: "nightly", Struck: struck, Other: other, Claim: claim(long), Dead: dead,
		Strike: s.arm, Calm: s.disarm, Land: sync.OnceFunc(s.proxy.Land), Token: s.token, Taken: func(string) {}, Gone: s.gone, Hidden: true,
	}
}

func (s *stage) arm() {
	s.proxy.Inject(func(n int) pglab.Outcome {
		if n < s.n || n >= s.n+s.what.times {
			return pglab.Done
		}
		s.hit.Store(true)
		return s.what.outcome
	})
}

func (s *stage) disarm() bool {
	s.proxy.Inject(nil)
	return s.hit.Load()
}

// token is whose the lock is in the database, "" if nobody's.
func (s *stage) token() string {
	return s.server.Value(fmt.Sprintf("SELECT token FROM multilock.lock WHERE grp = '%s' AND name = 'nightly'", s.group))
}

// gone: nobody's place in the line is left.
func (s *stage) gone() {
	require.Equal(s, "0", s.server.Value(fmt.Sprintf("SELECT count(*) FROM multilock.wait WHERE grp = '%s'", s.group)))
}

// deadIdentity is a process of this host that has ended.
func deadIdentity(tb testing.TB) process.Identity {
	tb.Helper()
	self, err := process.Self()
	require.NoError(tb, err)
	self.Start++
	return self
}
