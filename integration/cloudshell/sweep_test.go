package cloudshell_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/fakecloudshell"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/cloudshell"
	"github.com/multilock/go/multilock/source"
)

// fault is what strikes at one request, and perhaps at all that follow.
type fault struct {
	name string
	fakecloudshell.Fault
	// outage strikes all later requests as well; crash also ends the client there.
	outage, crash bool
}

// faults are what a request can meet: it is carried out or not, now or later, and
// nobody is told, or somebody is told something else.
func faults() []fault {
	odd := &fakecloudshell.Failure{Code: 100, Message: "Object reference not set to an instance of an object"}
	return []fault{
		{name: "lost", Fault: fakecloudshell.Fault{Reply: fakecloudshell.Dropped}},
		{name: "dropped", Fault: fakecloudshell.Fault{Execute: fakecloudshell.Never, Reply: fakecloudshell.Dropped}},
		{name: "late", Fault: fakecloudshell.Fault{Execute: fakecloudshell.OnceGone, Reply: fakecloudshell.Dropped}},
		{name: "torn", Fault: fakecloudshell.Fault{Reply: fakecloudshell.Torn}},
		{name: "failed", Fault: fakecloudshell.Fault{Status: http.StatusInternalServerError}},
		{name: "unavailable", Fault: fakecloudshell.Fault{Execute: fakecloudshell.Never, Status: http.StatusServiceUnavailable}},
		{name: "denied", Fault: fakecloudshell.Fault{Execute: fakecloudshell.Never, Failure: odd}},
		{name: "denied though done", Fault: fakecloudshell.Fault{Failure: odd}},
		{name: "gone", Fault: fakecloudshell.Fault{Execute: fakecloudshell.Never, Reply: fakecloudshell.Dropped}, outage: true},
		{name: "gone after", Fault: fakecloudshell.Fault{Reply: fakecloudshell.Dropped}, outage: true},
		{name: "crash before", Fault: fakecloudshell.Fault{Execute: fakecloudshell.Never, Reply: fakecloudshell.Dropped}, outage: true, crash: true},
		{name: "crash after", Fault: fakecloudshell.Fault{Reply: fakecloudshell.Dropped}, outage: true, crash: true},
	}
}

// stage is one run of a scene: a reservation of its own, the client that faults
// strike, and one that they do not.
type stage struct {
	*testing.T
	lab     *lab
	sandbox string
	src     *cloudshell.Source // of the user whom faults strike
	other   *cloudshell.Source

	struck   atomic.Int64 // the number of the request that was struck, -1 before
	method   atomic.Value
	lease    source.Lease
	observer source.Observer
	seen     multilock.Sighting
}

const (
	sweptName = "MUTEX"
	sweptTTL  = 300 * time.Millisecond
)

// longClaim is of a holder whose TTL does not pass during a test, shortClaim of one
// that can be taken over soon.
func longClaim() source.Claim  { return source.Claim{TTL: time.Hour, Heartbeat: time.Minute} }
func shortClaim() source.Claim { return source.Claim{TTL: sweptTTL, Heartbeat: sweptTTL / 10} }

func newStage(t *testing.T, l *lab) *stage {
	t.Helper()
	s := &stage{T: t, lab: l, sandbox: uuid.NewString()}
	l.server.AddReservation(fakecloudshell.Reservation{ID: s.sandbox})
	opt := l.opt
	opt.Reservation = s.sandbox
	s.src = l.openWith(t, opt)
	opt.User, opt.Password = "ann", cloudshell.NewSecret("ann")
	s.other = l.openWith(t, opt)
	s.struck.Store(-1)
	return s
}

// scene is a part of the protocol that is swept.
type scene struct {
	name    string
	prepare func(*stage) error
	play    func(*stage) error
	check   func(*stage, error)
}

// Whatever request is lost, late, refused or the last: what the library says is
// true of the server, and the next contender gets the lock.
func TestFaultAtEveryRequest(t *testing.T) {
	t.Parallel()
	for _, sc := range scenes() {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			for _, f := range faults() {
				t.Run(f.name, func(t *testing.T) {
					for n := int64(0); sweepRequest(t, sc, f, n); n++ {
						require.Less(t, n, int64(60), "the sweep does not end")
					}
				})
			}
		})
	}
}

// sweepRequest reports false when the scene ended before its n-th request.
func sweepRequest(t *testing.T, sc scene, f fault, n int64) bool {
	t.Helper()
	s := newStage(t, newLab(t, serverOptions()))
	if sc.prepare != nil {
		require.NoError(t, sc.prepare(s))
	}
	s.strike(f, n)
	err := sc.play(s)
	s.lab.server.Inject(nil)
	if s.struck.Load() < 0 {
		require.NoError(t, err)
		sc.check(s, nil)
		s.requireUsable()
		return false
	}
	where := fmt.Sprintf("request %d, %s: %v", n, s.method.Load(), err)
	defer func() {
		if t.Failed() {
			t.Log(where)
		}
	}()
	if f.crash {
		s.requireTakeOver()
		return true
	}
	sc.check(s, err)
	s.lab.server.Land()
	s.requireUsable()
	return true
}

func (s *stage) strike(f fault, n int64) {
	var count atomic.Int64
	s.lab.server.Inject(func(c fakecloudshell.Call) fakecloudshell.Fault {
		if c.User != "admin" {
			return fakecloudshell.Fault{}
		}
		now := count.Add(1) - 1
		if now == n {
			s.struck.Store(n)
			s.method.Store(string(c.Method))
			return f.Fault
		}
		if now > n && f.outage {
			return fakecloudshell.Fault{Execute: fakecloudshell.Never, Reply: fakecloudshell.Dropped}
		}
		return fakecloudshell.Fault{}
	})
}

// requireTakeOver: what a client left that ended at any point, the next one takes
// after the silence, and leaves nothing of it.
func (s *stage) requireTakeOver() {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	if top := s.top(); top.kind == "held" && (top.command == "multilock break" || s.seen.Record.TTL == longClaim().TTL && top.token == s.seen.Record.Token) {
		return // it has a TTL of minutes or hours
	}
	lock, err := multilock.Acquire(ctx, s.other, sweptName, multilock.Options{})
	require.NoError(s, err)
	s.lab.server.Land()
	require.NoError(s, lock.Release(ctx))
	require.Equal(s, "free", s.top().kind)
	require.NotContains(s, s.services(), sweptName)
}

// requireUsable: another contender takes what is free, and forces what is not.
func (s *stage) requireUsable() {
	s.Helper()
	if s.lease != nil {
		_ = s.lease.Release(s.Context())
	}
	seen, err := multilock.Inspect(s.Context(), s.other, sweptName, multilock.Patience{})
	require.NoError(s, err)
	if seen.State != multilock.StateFree {
		_, err := multilock.Break(s.Context(), s.other, sweptName, multilock.Want{Alive: true})
		require.NoError(s, err)
	}
	lock, err := multilock.TryAcquire(s.Context(), s.other, sweptName, multilock.Options{})
	require.NoError(s, err)
	require.NoError(s, lock.Verify(s.Context()))
	require.NoError(s, lock.Release(s.Context()))
}
