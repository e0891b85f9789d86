package main

import (
	"context"
	"errors"
	"io/fs"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// tidyings is how often a meeting is tidied up: what NFS leaves of a file that was
// open when it was removed is gone a moment later.
const tidyings = 3

// tidy clears away what participants left who died: now, or in an earlier meeting of
// which nobody was left. A holder that lives keeps its lock. What takes too long is
// left to whoever uses the locks next: it is in nobody's way.
func (m *meeting) tidy(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, 2*m.pace.ttl)
	defer cancel()
	for range tidyings {
		left, err := m.tidyOnce(limited)
		if err == nil && left {
			err = rest(limited, m.pace.pause)
		}
		switch {
		case limited.Err() != nil:
			return context.Cause(ctx)
		case err != nil || !left:
			return err
		}
	}
	return nil
}

// tidyOnce says whether something was there that nobody held.
func (m *meeting) tidyOnce(ctx context.Context) (left bool, err error) {
	names, err := answered(ctx, func() ([]string, error) { return m.src.locks.Names(ctx) })
	if err != nil {
		return false, err
	}
	for _, name := range names {
		if _, _, ok := cutSeat(name); !ok && name != joinName {
			continue
		}
		unheld, err := m.clear(ctx, name)
		if errors.Is(err, fs.ErrPermission) {
			continue // another user's, who died
		}
		if err != nil && !errors.Is(err, multilock.ErrHeld) && !errors.Is(err, multilock.ErrFree) {
			return false, err
		}
		left = left || unheld
	}
	return left, nil
}

// clear breaks a lock whose holder is dead, and removes what a release may have left
// of one that nobody holds: then unheld is true.
func (m *meeting) clear(ctx context.Context, name string) (unheld bool, err error) {
	seen, err := multilock.Inspect(ctx, m.src.locks, name, multilock.Patience{})
	switch {
	case err != nil:
		return false, err
	case seen.State == multilock.StateFree || seen.Limbo:
		if group, ok := extra[source.Group](m.src, source.TraitCheapBarrier); ok {
			_, err = answered(ctx, func() (struct{}, error) { return struct{}{}, group.Tidy(ctx, name) })
		}
		return true, err
	case seen.State == multilock.StateSuspect || seen.State == multilock.StateDead:
		_, err = multilock.Break(ctx, m.src.locks, name, multilock.Want{Token: seen.Record.Token})
	}
	return false, err
}
