package mongo_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/multilock/go/integration/engine"
	"github.com/multilock/go/integration/mongolab"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/source"
)

const (
	// long is a TTL that does not expire during a test.
	long = time.Hour
	// eyeblink is the pause between two checks of a condition.
	eyeblink = 2 * time.Millisecond
)

// TestSweep runs each operation of a holder, a breaker or a reader with a fault at its first command,
// then at its second, and so on until it has no such command. Afterwards the reported result must match
// what is in the database.
func TestSweep(t *testing.T) {
	operations := locktest.Operations("first acquire", "acquire", "be refused", "renew", "release", "break", "force", "commit", "forget",
		"mark the job", "fence", "learn the outcome", "publish", "record", "read")
	for _, mode := range []struct {
		name string
		opt  mongolab.Options
	}{{"standalone", mongolab.Options{}}, {"replica set", mongolab.Options{ReplicaSet: true}}} {
		if testing.Short() && mode.opt.ReplicaSet {
			continue
		}
		for name, trouble := range troubles() {
			for _, op := range operations {
				t.Run(mode.name+"/"+op.Name+"/"+name, func(t *testing.T) {
					t.Parallel()
					l := newLab(t, mode.opt)
					op.Sweep(t, func(n int) *locktest.Bench { return newStage(l, trouble, n).bench() })
				})
			}
			t.Run(mode.name+"/swap/"+name, func(t *testing.T) {
				t.Parallel()
				sweepSwap(newLab(t, mode.opt), trouble)
			})
		}
	}
}

// trouble is a fault of several commands in a row.
type trouble struct {
	mongolab.Fault
	times int
}

// troubles returns all faults of a command, and two that also hit its retries.
func troubles() map[string]trouble {
	return map[string]trouble{
		"dropped":       {mongolab.Fault{Outcome: mongolab.Dropped}, 1},
		"dropped twice": {mongolab.Fault{Outcome: mongolab.Dropped}, 2},
		"lost":          {mongolab.Fault{Outcome: mongolab.Lost}, 1},
		"lost thrice":   {mongolab.Fault{Outcome: mongolab.Lost}, 3},
		"zombie":        {mongolab.Fault{Outcome: mongolab.Zombie}, 1},
		"not primary":   {mongolab.Fault{Outcome: mongolab.Refused, Code: mongolab.NotWritablePrimary}, 1},
		"stepped down":  {mongolab.Fault{Outcome: mongolab.Misreported, Code: mongolab.InterruptedDueToReplStateChange}, 1},
		"unconfirmed":   {mongolab.Fault{Outcome: mongolab.Unconfirmed, Code: mongolab.WriteConcernFailed}, 1},
	}
}

// stage is a collection with one fault.
type stage struct {
	*lab
	c    *mongo.Collection
	n    int
	what trouble

	hit    atomic.Bool
	awaken chan struct{} // closed when zombies may be executed
	awake  func()
}

func newStage(l *lab, what trouble, n int) *stage {
	s := &stage{lab: l, c: l.collection(), n: n, what: what, awaken: make(chan struct{})}
	s.awake = sync.OnceFunc(s.land)
	return s
}

// bench returns a bench on which faults of the network must be hidden, even a few in a row. A server's
// claim not to be the primary is trusted, unless the driver finds out otherwise.
func (s *stage) bench() *locktest.Bench {
	dead := claim(long)
	dead.Holder.Identity = engine.Dead(s)
	return &locktest.Bench{
		TB: s, Name: "nightly", Struck: s.open(s.c, ""), Other: s.open(s.c, ""), Claim: claim(long), Dead: dead,
		Strike: s.arm, Calm: s.disarm, Land: s.awake, Token: s.token, Taken: func(string) {}, Gone: func() {}, Hidden: s.what.Outcome != mongolab.Refused,
	}
}

// arm injects the fault at the n-th command from now on.
func (s *stage) arm() {
	fault := s.what.Fault
	if fault.Outcome == mongolab.Zombie {
		fault.Before = mongolab.Until(s.awaken)
	}
	s.server.Inject(func(c mongolab.Command) mongolab.Fault {
		if c.N < s.n || c.N >= s.n+s.what.times {
			return mongolab.Fault{}
		}
		s.hit.Store(true)
		return fault
	})
}

func (s *stage) disarm() bool {
	s.server.Inject(nil)
	return s.hit.Load()
}

// land lets a delayed command continue and waits until it was executed.
func (s *stage) land() {
	close(s.awaken)
	if s.what.Outcome != mongolab.Zombie || !s.hit.Load() {
		return
	}
	require.Eventually(s, func() bool {
		for _, x := range s.server.Log() {
			if x.Outcome == mongolab.Zombie && x.Reply == nil && x.Err == nil {
				return false
			}
		}
		return true
	}, watchdog, eyeblink)
}

// token returns the token in the lock's document, "" without a document.
func (s *stage) token() string {
	token, _ := s.raw(s.c, "nightly")["locked"].(string)
	return token
}

// result returns a job's result with this exit code.
func result(lock interface{ Record() source.Record }, exit int) multilock.Result {
	r := lock.Record()
	return multilock.Result{Name: r.Name, Token: r.Token, By: r.Holder.Identity, Exit: exit, Attempt: 1}
}

func sweepSwap(l *lab, what trouble) {
	var s *stage
	op := locktest.Swapping(func(*locktest.Bench) source.Register { return s.register(s.place(s.c), "cell") })
	op.Sweep(l, func(n int) *locktest.Bench {
		s = newStage(l, what, n)
		b := s.bench()
		b.Hidden = false
		return b
	})
}
