package mongo_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/multilock/go/integration/mongolab"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/mongolock"
	"github.com/multilock/go/multilock/source"
)

// TestSweep does what a holder, a breaker or a reader does, with a fault at the
// first command, then at the second, and so on until there is no such command. What
// was said must be true of what is in the database then.
func TestSweep(t *testing.T) {
	for _, mode := range []struct {
		name string
		opt  mongolab.Options
	}{{"standalone", mongolab.Options{}}, {"replica set", mongolab.Options{ReplicaSet: true}}} {
		if testing.Short() && mode.opt.ReplicaSet {
			continue
		}
		for _, scene := range scenes() {
			for name, trouble := range troubles() {
				t.Run(mode.name+"/"+scene.name+"/"+name, func(t *testing.T) {
					t.Parallel()
					sweep(newLab(t, mode.opt), scene, trouble)
				})
			}
		}
	}
}

// trouble is a fault of several commands in a row.
type trouble struct {
	mongolab.Fault
	times int
}

// troubles are all ways in which a command can go wrong, and the two of them that
// hit its repetition as well.
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

// scene is an operation, and what must be true of it.
type scene struct {
	name string
	play func(*stage)
}

// stage is where a scene is played once, with one fault.
type stage struct {
	*lab
	c    *mongo.Collection
	src  *mongolock.Source
	ctx  context.Context //nolint:containedctx // the test's own
	n    int
	what trouble

	hit    atomic.Bool
	awaken chan struct{} // closed when zombies may walk
}

// maxSweep is more than any operation needs.
const maxSweep = 40

func sweep(l *lab, s scene, what trouble) {
	for n := range maxSweep {
		c := l.collection()
		st := &stage{lab: l, c: c, src: l.open(c, ""), ctx: within(l), n: n, what: what, awaken: make(chan struct{})}
		s.play(st)
		st.disarm()
		if !st.hit.Load() {
			require.Positive(l, n, "the operation sends no command")
			l.Logf("%d commands", n)
			return
		}
	}
	require.Fail(l, "the sweep does not end")
}

// arm has the n-th command from now on go wrong.
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

func (s *stage) disarm() { s.server.Inject(nil) }

// awake lets a command be carried out that was stuck, and waits for it.
func (s *stage) awake() {
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

// requireDone: what the network loses, even a few times in a row, nobody notices. A
// server that says that it is not the primary is believed, unless the driver finds
// out better.
func (s *stage) requireDone(err error) {
	s.Helper()
	if s.what.Outcome != mongolab.Refused {
		require.NoError(s, err)
	}
}

// locked is the field of a lock, false if there is no document.
func (s *stage) locked(name string) any {
	doc := s.raw(s.c, name)
	if doc == nil {
		return false
	}
	return doc["locked"]
}

func (s *stage) requireHeldBy(token string) { require.Equal(s, token, s.locked("nightly")) }

func (s *stage) requireNobody() { require.Equal(s, false, s.locked("nightly")) }

// take takes the lock before the fault.
func (s *stage) take() *multilock.Lock {
	lock := try(s, s.src, "nightly", multilock.Options{TTL: long, Detached: true})
	s.Cleanup(func() { _ = lock.Detach() })
	return lock
}

func (s *stage) String() string { return fmt.Sprintf("command %d %s", s.n, s.what.Outcome) }

// result is what a job ended with.
func result(lock interface{ Record() source.Record }, exit int) multilock.Result {
	r := lock.Record()
	return multilock.Result{Name: r.Name, Token: r.Token, By: r.Holder.Identity, Exit: exit, Attempt: 1}
}

// rival is a source that works without faults.
func (s *stage) rival() *mongolock.Source { return s.open(s.c, "") }
