package show

import (
	"context"
	"fmt"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/internal/parallel"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// Lock is a lock in --json. Durations are seconds; null is unknown.
type Lock struct {
	Name    string   `json:"name"`
	State   string   `json:"state"` // held, suspect, dead, free
	Why     string   `json:"why"`
	Token   string   `json:"token,omitempty"`
	Host    string   `json:"host,omitempty"`
	PID     int      `json:"pid,omitempty"`
	User    string   `json:"user,omitempty"`
	Command string   `json:"command,omitempty"`
	Job     bool     `json:"job,omitempty"`
	TTL     float64  `json:"ttl_seconds,omitempty"`
	Age     *float64 `json:"held_seconds"`
	Silence *float64 `json:"heartbeat_age_seconds"`
	// Expires is the time until the holder may count as dead if it sends no more heartbeats; null if unknown,
	// or if it never expires by itself.
	Expires *float64 `json:"expires_seconds"`
	Foreign string   `json:"unreadable_because,omitempty"`
	Queue   string   `json:"queue,omitempty"` // of a ticket: the lock that it waits for
	Chunk   *Chunk   `json:"chunk,omitempty"` // of several jobs that run under the lock
	// Running are the jobs known to run under the lock: see ReadRunning.
	Running []Running `json:"running_jobs,omitempty"`

	groups []process.Group
}

// LockOf makes the JSON form of an inspected lock.
func LockOf(name string, s multilock.Observation) Lock {
	r := s.Record
	return Lock{
		Name: name, State: s.State.String(), Why: s.Why, Token: r.Token,
		Host: r.Holder.Host, PID: max(r.Holder.PID, 0), User: r.Holder.User, Command: r.Holder.Command,
		Job: r.Job, TTL: r.TTL.Seconds(), Age: seconds(s.Age), Silence: seconds(s.Silence), Expires: expires(s, multilock.StalePolicy{}), Foreign: r.Foreign, groups: r.Groups,
	}
}

// HeldFor returns how long the lock has been held, 0 if unknown.
func (l Lock) HeldFor() time.Duration {
	if l.Age == nil {
		return 0
	}
	return time.Duration(*l.Age * float64(time.Second))
}

// expires returns the time until a holder may count as dead if it sends no more heartbeats. A holder that is
// still held after that has a live job.
func expires(s multilock.Observation, policy multilock.StalePolicy) *float64 {
	limit := max(s.Record.TTL, policy.MaxAge)
	switch left := limit - s.Silence; {
	case s.State == multilock.StateFree, s.State == multilock.StateHeld && left <= 0:
		return nil
	case s.State == multilock.StateDead:
		return new(float64)
	case limit <= 0 || s.Silence == source.Unknown:
		return nil
	default:
		return seconds(max(left, 0))
	}
}

// AgoCell formats a time span of the lock, "-" for a free lock.
func (l Lock) AgoCell(s *float64) string {
	if l.State == multilock.StateFree.String() {
		return "-"
	}
	return Ago(s)
}

// ExpiresCell formats Expires.
func (l Lock) ExpiresCell() string {
	switch {
	case l.State == multilock.StateDead.String():
		return "now"
	case l.Expires == nil:
		return "-"
	case *l.Expires == 0:
		return "due"
	}
	return Ago(l.Expires)
}

func seconds(d time.Duration) *float64 {
	if d == source.Unknown {
		return nil
	}
	s := d.Seconds()
	return &s
}

// describe describes the lock's holder, and why it counts as alive.
func describe(name string, s multilock.Observation) string {
	return fmt.Sprintf("lock %q is %s", name, console.HeldBy(s))
}

// Holder names the lock's holder.
func (l Lock) Holder() string {
	h := multilock.Holder{User: l.User, Command: l.Command}
	h.Host, h.PID = l.Host, l.PID
	return h.String()
}

// Holdings makes the JSON form of held locks.
func Holdings(holdings []lockgroup.Holding) []Lock {
	views := []Lock{}
	for _, h := range holdings {
		views = append(views, LockOf(h.Name, h.Observation))
	}
	return views
}

// Inspect inspects the locks with these names.
func Inspect(ctx context.Context, src *place.Source, names []string, policy multilock.StalePolicy) []Lock {
	inspector := multilock.NewInspector(src.Locks, policy)
	defer inspector.Close() //nolint:errcheck // it was only read
	return Look(ctx, src, names, inspector)
}

// Look is Inspect with an inspector that remembers earlier inspections.
func Look(ctx context.Context, src *place.Source, names []string, inspector *multilock.Inspector) []Lock {
	views := make([]Lock, len(names))
	InParallel(len(names), func(i int) { views[i] = inspectOne(ctx, src.Locks, names[i], inspector) })
	return views
}

// InParallel calls f for 0 to n-1, several at a time.
func InParallel(n int, f func(i int)) {
	_ = parallel.Do(parallel.Requests, n, func(i int) error { f(i); return nil })
}

// StateUnknown is the state of a lock that could not be inspected.
const StateUnknown = "unknown"

// inspectOne inspects a lock. If that fails, the lock's state is unknown.
func inspectOne(ctx context.Context, locks multilock.Source, name string, inspector *multilock.Inspector) Lock {
	seen, err := inspector.Look(ctx, name)
	if err != nil {
		return Lock{Name: name, State: StateUnknown, Why: err.Error()}
	}
	l := LockOf(name, seen)
	l.Expires = expires(seen, inspector.StalePolicy())
	if seen.State != multilock.StateFree {
		l.Chunk = chunkUnder(ctx, locks, name)
	}
	return l
}

// What describes the work under the lock.
func (l Lock) What() string {
	if l.Chunk.several() {
		return l.Chunk.text()
	}
	return l.Command
}

// For returns the lock from the view of one of the jobs that run under it.
func (l Lock) For(job string) Lock {
	if l.Chunk.several() {
		l.Why = "it is one of " + l.Chunk.text() + ": " + l.Why
	}
	l.Name = job
	return l
}
