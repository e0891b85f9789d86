package multilock

import (
	"context"
	"errors"
	"sync"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock/source"
)

// Inspect inspects the lock name once. A holder without heartbeats is at most Suspect: only watching it
// shows whether it is Dead, see Break and Inspector.
func Inspect(ctx context.Context, src Source, name string, policy StalePolicy) (Observation, error) {
	observer, err := observe(ctx, src, name, policy)
	if err != nil {
		return Observation{}, err
	}
	seen, err := ask(ctx, observer, observer.Look)
	return seen, closeAfter(observer, err)
}

// Inspector inspects locks of one source repeatedly, and remembers those whose holders may be dead. So it
// finds out what one inspection cannot: how long a holder sends no heartbeat. It does not break locks.
// Several goroutines may use it, each for different names.
type Inspector struct {
	src       Source
	policy    StalePolicy
	mu        sync.Mutex
	observers map[string]source.Observer // of holders that may be dead
}

// maxObservers bounds the observers of an Inspector: each may have a directory open.
const maxObservers = 128

// NewInspector returns an Inspector, which must be closed.
func NewInspector(src Source, policy StalePolicy) *Inspector {
	return &Inspector{src: src, policy: policy, observers: map[string]source.Observer{}}
}

// Look inspects the lock name. The result is that of Inspect, combined with earlier inspections.
func (i *Inspector) Look(ctx context.Context, name string) (Observation, error) {
	observer := i.take(name)
	if observer == nil {
		var err error
		if observer, err = observe(ctx, i.src, name, i.policy); err != nil {
			return Observation{}, err
		}
	}
	seen, err := ask(ctx, observer, observer.Look)
	if err != nil || seen.State != StateSuspect && seen.State != StateDead {
		return seen, closeAfter(observer, err)
	}
	return seen, i.keep(name, observer)
}

func (i *Inspector) take(name string) source.Observer {
	i.mu.Lock()
	defer i.mu.Unlock()
	observer := i.observers[name]
	delete(i.observers, name)
	return observer
}

// keep keeps an observer, and drops another one if there are too many.
func (i *Inspector) keep(name string, observer source.Observer) (err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for other, outdated := range i.observers {
		if other == name || len(i.observers) >= maxObservers {
			err = errors.Join(err, outdated.Close())
			delete(i.observers, other)
		}
	}
	i.observers[name] = observer
	return err
}

// StalePolicy returns the policy given to NewInspector.
func (i *Inspector) StalePolicy() StalePolicy { return i.policy }

// Close closes the observers.
func (i *Inspector) Close() (err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, observer := range i.observers {
		err = errors.Join(err, observer.Close())
	}
	clear(i.observers)
	return err
}

func observe(ctx context.Context, src Source, name string, policy StalePolicy) (source.Observer, error) {
	return within(ctx, src, func() (source.Observer, error) { return src.Observe(ctx, name, policy) }, discard[source.Observer])
}

// BreakOptions select the lock that Break breaks.
type BreakOptions struct {
	// Token, if not empty, selects one acquisition.
	Token string
	// Alive permits breaking the lock of a live holder.
	Alive bool
	StalePolicy
}

// Break breaks the lock name if its holder is dead, and watches the holder until that is certain. It
// returns the last observation before the break. The error is a *HeldError if the holder is alive (unless
// opt.Alive), or if the lock is not the one that opt.Token selects; ErrFree if no process holds it.
func Break(ctx context.Context, src Source, name string, opt BreakOptions) (Observation, error) {
	observer, err := observe(ctx, src, name, opt.StalePolicy)
	if err != nil {
		return Observation{}, err
	}
	seen, err := breakObserved(ctx, observer, name, opt)
	return seen, closeAfter(observer, err)
}

func breakObserved(ctx context.Context, observer source.Observer, name string, opt BreakOptions) (Observation, error) {
	for {
		seen, err := ask(ctx, observer, observer.Look)
		switch {
		case err != nil:
			return seen, err
		case seen.State == StateFree:
			return seen, ErrFree
		case opt.Token != "" && opt.Token != seen.Record.Token:
			seen.Why = "this is another acquisition than the one named; " + seen.Why
			return seen, &HeldError{Name: name, Observation: seen}
		case opt.Alive:
			return seen, tell(ctx, observer, observer.Force)
		case seen.State == StateDead:
			return breakDead(ctx, observer, name, seen)
		case seen.State == StateHeld:
			return seen, &HeldError{Name: name, Observation: seen}
		}
		if err := bounded.Sleep(ctx, seen.Next); err != nil {
			return seen, err
		}
	}
}

// breakDead breaks a lock whose holder was seen dead, unless the holder turns out to be alive.
func breakDead(ctx context.Context, observer source.Observer, name string, seen Observation) (Observation, error) {
	err := tell(ctx, observer, observer.Break)
	if errors.Is(err, ErrHeld) {
		seen.State, seen.Why = StateHeld, "it changed just when it was to be broken"
		err = &HeldError{Name: name, Observation: seen}
	}
	return seen, err
}
