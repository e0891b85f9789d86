package fakecloudshell

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// world is what the server knows. Each call is carried out at one moment, under
// one lock: that is what makes AddServiceToReservation decide between two.
type world struct {
	policy   Policy
	failures Failures
	lifetime time.Duration
	now      func() time.Time

	mu           sync.Mutex
	users        map[string]User
	models       map[string]Model
	reservations map[string]*reservation // by lower-case id
	sessions     map[string]session      // by token
	commands     map[string]*command     // by token
}

func newWorld(opt Options) *world {
	return &world{
		policy: opt.Policy, failures: opt.Failures, lifetime: opt.SessionLifetime, now: opt.Now,
		users: map[string]User{}, models: map[string]Model{}, reservations: map[string]*reservation{},
		sessions: map[string]session{}, commands: map[string]*command{},
	}
}

// caller is who makes a call, and how he wants dates.
type caller struct {
	session
	token string
	dates string // a layout of package time
}

// execute carries one call out.
func (w *world) execute(s signature, who caller, args arguments) (any, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return s.execute(w, who, args)
}

// reservation finds a reservation that the caller may use.
func (w *world) reservation(who caller, args arguments) (*reservation, error) {
	r := w.reservations[strings.ToLower(strings.TrimSpace(args.text("reservationId")))]
	if r == nil || !w.policy.AnyDomain && r.Domain != who.domain {
		return nil, &w.failures.UnknownReservation
	}
	if !r.permits(who.user) {
		return nil, &w.failures.NotPermitted
	}
	return r, nil
}

// running finds a reservation that can still be changed.
func (w *world) running(who caller, args arguments) (*reservation, error) {
	r, err := w.reservation(who, args)
	if err == nil && r.ended {
		return nil, &w.failures.ReservationEnded
	}
	return r, err
}

// reservation is the server's side of a Reservation.
type reservation struct {
	Reservation
	ended   bool
	data    map[string]string
	cache   *snapshot // what GetReservationDetails showed last, nil at first
	created time.Time
	changed time.Time
}

func (r *reservation) permits(user User) bool {
	return user.Admin || r.Owner == user.Name || slices.Contains(r.Permitted, user.Name)
}

// find is the index of a service, -1 if there is none.
func (r *reservation) find(alias string, policy Policy) int {
	return slices.IndexFunc(r.Services, func(s Service) bool {
		return s.Alias == alias || policy.FoldAliases && strings.EqualFold(s.Alias, alias)
	})
}

// snapshot is a reservation as it was at a moment.
type snapshot struct {
	reservation
	read time.Time
}

func (r *reservation) snapshot(now time.Time) *snapshot {
	s := &snapshot{reservation: *r, read: now}
	s.cache, s.data = nil, nil
	s.Services = cloneServices(r.Services)
	return s
}
