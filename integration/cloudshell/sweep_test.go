package cloudshell_test

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/fakecloudshell"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/cloudshell"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/source"
)

// fault is a fault of one request, and perhaps of all later ones.
type fault struct {
	name string
	fakecloudshell.Fault
	// outage also makes all later requests fail; crash also ends the client.
	outage, crash bool
}

// faults returns everything that can happen to a request: it is executed now, later or never, and the
// client gets no reply or a wrong one.
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

const (
	sweptName = "MUTEX"
	sweptTTL  = 300 * time.Millisecond
)

// Whatever happens to any request, the reported result matches the server's state, and the next
// contender gets the lock.
func TestFaultAtEveryRequest(t *testing.T) {
	t.Parallel()
	for _, op := range locktest.Operations("first acquire", "acquire", "renew", "fence", "release", "late release", "break", "force") {
		sweepFaults(t, op.Name, op, false)
	}
	sweepFaults(t, "acquire what was left behind", locktest.Operations("first acquire")[0], true)
}

// leaveBehind leaves the service that scripts look at, as a late request does.
func (s *stage) leaveBehind() {
	lock := try(s, s.src, sweptName, multilock.Options{})
	left := s.services()[sweptName]
	release(s, lock)
	require.NoError(s, s.lab.server.PutService(s.sandbox, left))
}

func sweepFaults(t *testing.T, name string, op locktest.Operation, left bool) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		for _, f := range faults() {
			t.Run(f.name, func(t *testing.T) {
				op.Sweep(t, func(n int) *locktest.Bench {
					s := newStage(t)
					b := s.bench(f, n)
					if b.Startles = left; left { // its late removal removes the holder's service
						s.leaveBehind()
					}
					return b
				})
			})
		}
	})
}

// stage is a server with a reservation, a client that meets faults, and one that does not.
type stage struct {
	*testing.T
	lab        *lab
	sandbox    string
	src, other *cloudshell.Source
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{T: t, lab: newLab(t, serverOptions()), sandbox: uuid.NewString()}
	s.lab.server.AddReservation(fakecloudshell.Reservation{ID: s.sandbox})
	opt := s.lab.opt
	opt.Reservation = s.sandbox
	s.src = s.lab.openWith(t, opt)
	opt.User, opt.Password = "ann", cloudshell.NewSecret("ann")
	s.other = s.lab.openWith(t, opt)
	_, err := s.src.Now(t.Context()) // creates the session, and reads the model
	require.NoError(t, err)
	return s
}

func (s *stage) bench(f fault, n int) *locktest.Bench {
	var struck atomic.Bool
	claim := source.Claim{TTL: sweptTTL, Heartbeat: sweptTTL / 10}
	return &locktest.Bench{
		TB: s.T, Name: sweptName, Struck: s.src, Other: s.other, Claim: claim, Dead: claim, Early: true, Crashed: f.crash,
		Strike: func() { s.strike(f, n, &struck) },
		Calm: func() bool {
			s.lab.server.Inject(nil)
			return struck.Load()
		},
		Land:  func() { s.lab.server.Land() },
		Token: s.token,
		Taken: func(token string) {
			require.Contains(s, strings.Split(s.services()[sweptName].Attributes[fakecloudshell.OwnerAttribute], ";"), "n="+token, "the lock looks free to scripts")
		},
		Gone: func() { require.NotContains(s, s.services(), sweptName, "the lock looks held to scripts") },
	}
}

func (s *stage) strike(f fault, n int, struck *atomic.Bool) {
	var count atomic.Int64
	s.lab.server.Inject(func(c fakecloudshell.Call) fakecloudshell.Fault {
		if c.User != "admin" {
			return fakecloudshell.Fault{}
		}
		switch now := int(count.Add(1)) - 1; {
		case now == n:
			struck.Store(true)
			return f.Fault
		case now > n && f.outage:
			return fakecloudshell.Fault{Execute: fakecloudshell.Never, Reply: fakecloudshell.Dropped}
		}
		return fakecloudshell.Fault{}
	})
}

func (s *stage) services() map[string]fakecloudshell.Service {
	all := map[string]fakecloudshell.Service{}
	for _, service := range s.lab.server.Services(s.sandbox) {
		all[service.Alias] = service
	}
	return all
}

// token returns the token of the highest turn in the lock's register, "" if that turn is not held.
func (s *stage) token() string {
	s.Helper()
	highest, top := uint64(0), []string{"", ""}
	for alias, service := range s.services() {
		digits, found := strings.CutPrefix(alias, sweptName+".TURN.")
		number, err := strconv.ParseUint(digits, 10, 64)
		if found && err == nil && number >= highest {
			highest, top = number, strings.Split(service.Attributes[fakecloudshell.OwnerAttribute], ";")
		}
	}
	if top[1] != "held" {
		return ""
	}
	i := slices.IndexFunc(top, func(word string) bool { return strings.HasPrefix(word, "n=") })
	return strings.TrimPrefix(top[i], "n=")
}
