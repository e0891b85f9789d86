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

// holders is what a barrier knows of those who hold something: who they are, and
// which of them died.
type holders struct {
	src    source.Group
	policy multilock.StalePolicy
	died   func(Holding) // may be nil

	mu      sync.Mutex
	held    map[string]multilock.Sighting // at the last survey
	crashed map[string]multilock.Sighting
	left    map[string]leftLock // dead, and not to be cleared from here
	saw     bool                // a holder with a token was seen
	watched map[string]bool     // their silence is being watched
	watches sync.WaitGroup
}

// leftLock is the acquisition that was left, and why.
type leftLock struct {
	token string
	err   error
}

// maxWatches bounds how many silent holders are watched at a time. That takes
// one and a half heartbeats, and the others come at a later survey.
const maxWatches = 64

func newHolders(src source.Group, policy multilock.StalePolicy, died func(Holding)) *holders {
	return &holders{src: src, policy: policy, died: died, crashed: map[string]multilock.Sighting{}, left: map[string]leftLock{}, watched: map[string]bool{}}
}

// look inspects the locks that are held and concern the barrier. It changes nothing.
func (h *holders) look(ctx context.Context, concerns func(name string) bool) error {
	names, err := bounded.Call(ctx, h.src.Names)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	held := map[string]multilock.Sighting{}
	err = parallel.Do(parallel.Requests, len(names), func(i int) error {
		name := names[i]
		if !concerns(name) {
			return nil
		}
		seen, err := multilock.Inspect(ctx, h.src, name, h.policy)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil { // whatever it is, it is in the way
			seen = multilock.Sighting{State: multilock.StateHeld, Age: source.Unknown, Silence: source.Unknown, Why: err.Error()}
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

// clear removes what is in the way and belongs to nobody alive. Holders whose
// silence has to be watched first are watched in the background; what prevents
// their clearing goes to fail.
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

// seen is what the last look saw.
func (h *holders) seen() map[string]multilock.Sighting {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.held)
}

func (h *holders) watch(ctx context.Context, name string, seen multilock.Sighting, fail func(error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watched[name] || len(h.watched) >= maxWatches {
		return
	}
	h.watched[name] = true
	h.watches.Go(func() {
		err := h.bury(ctx, name, seen.Record)
		h.mu.Lock()
		delete(h.watched, name)
		h.mu.Unlock()
		if err != nil && ctx.Err() == nil {
			fail(err)
		}
	})
}

// keeperPatience is for how long a lock without a job is left alone whose holder is gone:
// a script that has ended looks like one that died, until the keeper of its lock has
// given that back.
const keeperPatience = time.Second

// bury breaks the lock of a dead holder, and nobody else's. That it is free, or
// its holder alive after all, is as good.
func (h *holders) bury(ctx context.Context, name string, record source.Record) error {
	if !record.Job {
		if err := bounded.Sleep(ctx, keeperPatience); err != nil {
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
	if seen.Limbo {
		h.gone(name, seen, nil)
		return err
	}
	// The holder is dead even if err is not nil. The lock may be gone by now, so this is the only report.
	if news := h.gone(name, seen, err); news && h.died != nil {
		h.died(Holding{name, seen})
	}
	return nil
}

// gone notes that a holder is dead, and why its lock was left, if it was. It says whether
// that is news.
func (h *holders) gone(name string, seen multilock.Sighting, left error) (news bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if left == nil {
		delete(h.held, name)
	} else {
		h.left[name] = leftLock{seen.Record.Token, left}
	}
	if seen.Limbo {
		return false
	}
	before, known := h.crashed[name]
	h.crashed[name] = seen
	return !known || before.Record.Token != seen.Record.Token
}

// inTheWay are the locks of the last look that are held by somebody who may live; left are
// those of the dead that cannot be cleared from here.
func (h *holders) inTheWay() (held map[string]multilock.Sighting, left map[string]error) {
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

// sawAny says whether somebody was seen who held something.
func (h *holders) sawAny() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.saw
}

// inspect looks at the holders now and then, and clears the dead away.
func (b *Barrier) inspect(ctx context.Context, cancel context.CancelCauseFunc) {
	defer b.holders.watches.Wait()
	var idle time.Time // since when a job that died is left, and nothing is held
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
			cancel(err) // what ended ctx before stays its cause
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

// errLeft opens a barrier at which nothing is held any more but by the dead.
var errLeft = errors.New("only locks of dead holders are left, which cannot be cleared from here")

// onlyLeft says that nothing keeps a barrier closed that waits for a vacant group but what
// cannot be cleared from here.
func (b *Barrier) onlyLeft() bool {
	if len(b.opt.Members) > 0 || b.results != nil && !b.complete() {
		return false
	}
	held, left := b.holders.inTheWay()
	return len(held) == 0 && len(left) > 0
}

// errAbandoned ends the wait for a job that died and that no host has taken over.
var errAbandoned = errors.New("a job died, and no host has taken it over")

// takeoverTTLs is for how many TTLs of a dead holder its job may be taken over.
const takeoverTTLs = 3

// grace is how long the jobs that died are waited for, because nothing that is waited for is held:
// a host that has others of them comes to these later. It is 0 if there is no limit now.
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

// shortestTTL is that of the holders at the last look, so that the next look is not long after a
// holder's time is over.
func (h *holders) shortestTTL() time.Duration {
	shortest := source.MaxTTL
	for _, seen := range h.seen() {
		if seen.State != multilock.StateFree && seen.Record.TTL > 0 {
			shortest = min(shortest, seen.Record.TTL)
		}
	}
	return shortest
}

// stuck ends the wait because the dead cannot be cleared away, so that it would
// last for ever. Members' work may be done by somebody who can.
func (b *Barrier) stuck(cancel context.CancelCauseFunc) func(error) {
	if len(b.opt.Members) > 0 {
		return func(error) {}
	}
	return cancel
}

const (
	// leastInspect is the least pause between two looks.
	leastInspect = 500 * time.Millisecond
	// firstInspect is when the second look at the holders comes.
	firstInspect = 2 * time.Second
	// lastLooks bounds the look at what is in the way when the time is over.
	lastLooks = 2 * time.Second
)

// concerns says whether a lock is in the barrier's way.
func (b *Barrier) concerns(name string) bool {
	return len(b.opt.Members) == 0 || b.results.awaited(name)
}

// lastLook sees how things stand when the time is over: the barrier may have
// opened between the last poll and now. Otherwise the wait's own error stays.
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
	return waited // what was seen before has to do
}

var errSilent = fmt.Errorf("no answer within %v", lastLooks)
