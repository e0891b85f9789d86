package lockgroup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/internal/parallel"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// holders are the observed holders of a barrier's group, dead ones included.
type holders struct {
	src    source.Group
	policy multilock.StalePolicy
	died   func(Holding) // may be nil

	mu      sync.Mutex
	held    map[string]multilock.Observation // at the last inspection
	crashed map[string]multilock.Observation
	left    map[string]leftLock // dead, but cannot be cleared from here
	saw     bool                // a holder with a token was seen
	watched map[string]bool     // their heartbeats are being watched
	watches sync.WaitGroup
}

// leftLock is an acquisition that could not be cleared, and why.
type leftLock struct {
	token string
	err   error
}

// maxWatches bounds how many suspect holders are watched at a time. Each watch takes one and a half
// heartbeat intervals; the others follow after a later inspection.
const maxWatches = 64

func newHolders(src source.Group, policy multilock.StalePolicy, died func(Holding)) *holders {
	return &holders{src: src, policy: policy, died: died, crashed: map[string]multilock.Observation{}, left: map[string]leftLock{}, watched: map[string]bool{}}
}

// look inspects the held locks that concern the barrier. It changes nothing.
func (h *holders) look(ctx context.Context, concerns func(name string) bool) error {
	names, err := bounded.Call(ctx, h.src.Names)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	held := map[string]multilock.Observation{}
	err = parallel.Do(parallel.Requests, len(names), func(i int) error {
		name := names[i]
		if !concerns(name) {
			return nil
		}
		seen, err := multilock.Inspect(ctx, h.src, name, h.policy)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil { // an unreadable lock counts as held
			seen = multilock.Observation{State: multilock.StateHeld, Age: source.Unknown, Silence: source.Unknown, Why: err.Error()}
		}
		mu.Lock()
		defer mu.Unlock()
		held[name] = seen
		return nil
	})
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held = held
	for _, seen := range held {
		h.saw = h.saw || seen.Record.Token != ""
	}
	return nil
}

// clear removes locks without a live holder. It watches suspect holders in the background, and
// passes errors to fail.
func (h *holders) clear(ctx context.Context, fail func(error)) {
	for name, seen := range h.seen() {
		switch seen.State {
		case multilock.StateFree:
			_, err := bounded.Call(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, h.src.Tidy(ctx, name) })
			if err != nil && ctx.Err() == nil {
				fail(err)
			}
		case multilock.StateDead, multilock.StateSuspect:
			h.watch(ctx, name, seen, fail)
		case multilock.StateHeld:
		}
	}
}

// seen returns the holders of the last inspection.
func (h *holders) seen() map[string]multilock.Observation {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.held)
}

func (h *holders) watch(ctx context.Context, name string, seen multilock.Observation, fail func(error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watched[name] || len(h.watched) >= maxWatches {
		return
	}
	h.watched[name] = true
	h.watches.Go(func() {
		err := h.breakDead(ctx, name, seen.Record)
		h.mu.Lock()
		delete(h.watched, name)
		h.mu.Unlock()
		if err != nil && ctx.Err() == nil {
			fail(err)
		}
	})
}

// keeperGrace is how long to wait before the lock of a script counts as dead: a script that ended
// looks dead until its keeper has released the lock.
const keeperGrace = time.Second

// breakDead breaks the lock of a dead holder. It is not an error if the lock is free, or if the holder
// is alive.
func (h *holders) breakDead(ctx context.Context, name string, record source.Record) error {
	if !record.Job {
		if err := bounded.Sleep(ctx, keeperGrace); err != nil {
			return err
		}
	}
	seen, err := multilock.Break(ctx, h.src, name, multilock.BreakOptions{Token: record.Token, StalePolicy: h.policy})
	switch {
	case errors.Is(err, multilock.ErrFree), errors.Is(err, multilock.ErrHeld):
		return nil
	case seen.State != multilock.StateDead:
		return err
	}
	if seen.Orphan {
		h.recordDead(name, seen, nil)
		return err
	}
	// The holder is dead even if err is not nil. The lock may be gone by now, so report it here.
	if first := h.recordDead(name, seen, err); first && h.died != nil {
		h.died(Holding{name, seen})
	}
	return nil
}

// recordDead records a dead holder, and why its lock was left, if it was. It reports whether the holder
// was not known to be dead.
func (h *holders) recordDead(name string, seen multilock.Observation, left error) (first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if left == nil {
		delete(h.held, name)
	} else {
		h.left[name] = leftLock{seen.Record.Token, left}
	}
	if seen.Orphan {
		return false
	}
	before, known := h.crashed[name]
	h.crashed[name] = seen
	return !known || before.Record.Token != seen.Record.Token
}

// inTheWay returns the locks of the last inspection whose holders may be alive, and the errors for
// locks of dead holders that cannot be cleared from here.
func (h *holders) inTheWay() (held map[string]multilock.Observation, left map[string]error) {
	held, left = h.seen(), map[string]error{}
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, seen := range held {
		l, isLeft := h.left[name]
		if isLeft = isLeft && l.token == seen.Record.Token; isLeft {
			left[name] = l.err
		}
		if isLeft || seen.State == multilock.StateFree {
			delete(held, name)
		}
	}
	return held, left
}

// sawAny reports whether any holder was seen.
func (h *holders) sawAny() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.saw
}

// inspect inspects the holders periodically and clears the locks of dead ones.
func (b *Barrier) inspect(ctx context.Context, cancel context.CancelCauseFunc) {
	defer b.holders.watches.Wait()
	var idle time.Time // since when a dead holder's job has waited while no awaited lock is held
	for pause := min(firstInspect, b.opt.Inspect); ; {
		start := time.Now()
		err := b.holders.look(ctx, b.concerns)
		if err == nil {
			b.holders.clear(ctx, b.stuck(cancel))
		}
		if err == nil && b.onlyLeft() {
			err = errLeft
		}
		if err != nil {
			cancel(err) // keeps an earlier cause
			return
		}
		took, limit := time.Since(start), b.holders.shortestTTL()/2
		switch grace := b.grace(); {
		case grace == 0:
			idle = time.Time{}
		case idle.IsZero():
			idle = start
			limit = min(limit, grace/2)
		case time.Since(idle) >= grace:
			cancel(errAbandoned)
			return
		default:
			limit = min(limit, grace/2)
		}
		if err := bounded.Sleep(ctx, min(pause, max(limit, leastInspect))); err != nil {
			return
		}
		pause = min(max(min(2*pause, max(limit, leastInspect)), leisure*took), b.opt.Inspect)
	}
}

// errLeft opens a barrier when all remaining holders are dead.
var errLeft = errors.New("only locks of dead holders are left, which cannot be cleared from here")

// onlyLeft reports whether only locks that cannot be cleared from here keep the barrier closed.
func (b *Barrier) onlyLeft() bool {
	if len(b.opt.Members) > 0 || b.results != nil && !b.complete() {
		return false
	}
	held, left := b.holders.inTheWay()
	return len(held) == 0 && len(left) > 0
}

// errAbandoned ends the wait for a dead holder's job that no host has taken over.
var errAbandoned = errors.New("a job died, and no host has taken it over")

// takeoverTTLs is the default of BarrierOptions.Takeover, in TTLs of the dead holder.
const takeoverTTLs = 3

// grace returns how long to wait for a takeover of dead holders' jobs, 0 for no limit. There is no
// limit while an awaited lock is held: its host may take over the other jobs later.
func (b *Barrier) grace() (longest time.Duration) {
	if b.results == nil || b.opt.Takeover < 0 {
		return 0
	}
	held, _ := b.holders.inTheWay()
	for name := range held {
		if b.concerns(name) {
			return 0
		}
	}
	for name, seen := range b.holders.dead() {
		if b.results.awaited(name) {
			longest = max(longest, cmp.Or(b.opt.Takeover, takeoverTTLs*cmp.Or(seen.Record.TTL, multilock.DefaultTTL)))
		}
	}
	return longest
}

// shortestTTL returns the shortest TTL of the holders at the last inspection, so that an expired lock
// is inspected soon.
func (h *holders) shortestTTL() time.Duration {
	shortest := source.MaxTTL
	for _, seen := range h.seen() {
		if seen.State != multilock.StateFree && seen.Record.TTL > 0 {
			shortest = min(shortest, seen.Record.TTL)
		}
	}
	return shortest
}

// stuck ends the wait when a dead holder's lock cannot be cleared: the group would never be empty.
// With Members the wait goes on, because another host may do their work.
func (b *Barrier) stuck(cancel context.CancelCauseFunc) func(error) {
	if len(b.opt.Members) > 0 {
		return func(error) {}
	}
	return cancel
}

const (
	// leastInspect is the shortest pause between two inspections.
	leastInspect = 500 * time.Millisecond
	// firstInspect is the pause before the second inspection.
	firstInspect = 2 * time.Second
	// lastLooks is the timeout of the last poll after the wait's deadline.
	lastLooks = 2 * time.Second
)

// concerns reports whether a lock can keep the barrier closed.
func (b *Barrier) concerns(name string) bool {
	return len(b.opt.Members) == 0 || b.results.awaited(name)
}

// lastLook polls once more after the wait's deadline: the barrier may have opened since the last poll.
// Otherwise it returns the wait's own error.
func (b *Barrier) lastLook(ctx context.Context, waited error) error {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), lastLooks, errSilent)
	defer cancel()
	if b.results != nil {
		b.results.rest = time.Time{}
	}
	if open, _, err := b.ask(ctx); err == nil && open {
		if err := b.learn(ctx); err != nil {
			return fmt.Errorf("%w, and how the runs of the lock group ended could not be read: %w", waited, err)
		}
		return nil
	}
	if err := b.holders.look(ctx, b.concerns); err != nil && b.holders.seen() == nil {
		return fmt.Errorf("%w, and what is held in the lock group could not be looked at: %w", waited, err)
	}
	return waited // report the holders of an earlier inspection
}

var errSilent = fmt.Errorf("no answer within %v", lastLooks)
