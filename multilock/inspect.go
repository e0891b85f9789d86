package multilock

import (
	"context"
	"errors"
	"time"
)

// Inspect takes one look at the lock name. A silent holder is at most Suspect:
// to be called Dead it must be watched, see Break.
func Inspect(ctx context.Context, src Source, name string, patience Patience) (Sighting, error) {
	observer, err := src.Observe(ctx, name, patience)
	if err != nil {
		return Sighting{}, err
	}
	seen, err := observer.Look(ctx)
	return seen, errors.Join(err, observer.Close())
}

// Want says which lock Break is to break.
type Want struct {
	// Token, if not empty, names the one acquisition that is meant.
	Token string
	// Alive allows to break a lock whose holder lives.
	Alive bool
	Patience
}

// Break breaks the lock name if its holder is dead, watching it as long as it
// takes to be sure. The sighting is the last one before. The error is a
// *HeldError if the holder lives (unless want.Alive), or if the lock is not the
// one that want.Token names; ErrFree if nobody holds it.
func Break(ctx context.Context, src Source, name string, want Want) (Sighting, error) {
	observer, err := src.Observe(ctx, name, want.Patience)
	if err != nil {
		return Sighting{}, err
	}
	seen, err := breakObserved(ctx, observer, name, want)
	return seen, errors.Join(err, observer.Close())
}

func breakObserved(ctx context.Context, observer Observer, name string, want Want) (Sighting, error) {
	for {
		seen, err := observer.Look(ctx)
		switch {
		case err != nil:
			return seen, err
		case seen.State == Free:
			return seen, ErrFree
		case want.Token != "" && want.Token != seen.Record.Token:
			seen.Why = "this is another acquisition than the one named; " + seen.Why
			return seen, &HeldError{Name: name, Sighting: seen}
		case want.Alive:
			return seen, observer.Force(ctx)
		case seen.State == Dead:
			return seen, observer.Break(ctx)
		case seen.State == Held:
			return seen, &HeldError{Name: name, Sighting: seen}
		}
		if err := sleep(ctx, seen.Next); err != nil {
			return seen, err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
