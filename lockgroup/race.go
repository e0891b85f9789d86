package lockgroup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/multilock/go/multilock"
)

// race tries for several slots at a time. The first that it gets wins; the other
// attempts are taken back, and what they got is given back. It returns when all
// of them have ended.
func race(ctx context.Context, numbers []int, acquire func(context.Context, int) (*multilock.Lock, error)) (*Slot, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	type entry struct {
		number int
		lock   *multilock.Lock
		err    error
	}
	entries := make(chan entry)
	for _, i := range numbers {
		go func() {
			lock, err := acquire(ctx, i)
			entries <- entry{i, lock, err}
		}()
	}
	var won *Slot
	var refused, failed error
	for range numbers {
		switch e := <-entries; {
		case errors.Is(e.err, multilock.ErrHeld):
			refused = errors.Join(refused, e.err)
		case e.err != nil:
			failed = errors.Join(failed, e.err)
		case won == nil:
			won = &Slot{e.lock, e.number}
			cancel(errDecided)
		default:
			_ = e.lock.Release(context.WithoutCancel(ctx)) // nobody works under it; its TTL frees it otherwise
		}
	}
	switch {
	case won != nil:
		return won, nil
	case failed != nil && ctx.Err() == nil:
		return nil, failed // that others are merely held is no excuse
	}
	return nil, errors.Join(failed, refused)
}

var errDecided = errors.New("another slot was taken")

// FullError says that every slot of a name is held.
type FullError struct {
	Name  string
	Slots int
	// Holders are those who were seen, at most one for each slot.
	Holders []*multilock.HeldError
}

func (e *FullError) Error() string {
	texts := []string{fmt.Sprintf("all %d slots of %q are held", e.Slots, e.Name)}
	for _, h := range e.Holders {
		_, number, _ := ParseSlotName(h.Name)
		texts = append(texts, fmt.Sprintf("slot %d by %s (%s)", number, h.Sighting.Record.Holder, h.Sighting.Why))
	}
	return strings.Join(texts, "; ")
}

// Is makes errors.Is(err, multilock.ErrHeld) true.
func (e *FullError) Is(target error) bool { return target == multilock.ErrHeld }

// full makes one error of those of all slots: the end of ctx, with the holders
// that were in the way; a refusal, if there is nothing but refusals; or else
// what went wrong.
func full(ctx context.Context, name string, n int, err error) error {
	e := &FullError{Name: name, Slots: n, Holders: refusals(err)}
	slices.SortFunc(e.Holders, func(a, b *multilock.HeldError) int { return strings.Compare(a.Name, b.Name) })
	switch {
	case errors.Is(err, multilock.ErrUnsure):
		return err
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		if len(e.Holders) == 0 {
			return context.Cause(ctx)
		}
		return errors.Join(context.Cause(ctx), e)
	case len(e.Holders) == n:
		return e
	}
	return err
}

// refusals finds all refusals in a tree of joined errors.
func refusals(err error) []*multilock.HeldError {
	if held, ok := err.(*multilock.HeldError); ok { //nolint:errorlint // the tree is walked here
		return []*multilock.HeldError{held}
	}
	switch wrapped := err.(type) { //nolint:errorlint // the same
	case interface{ Unwrap() []error }:
		var all []*multilock.HeldError
		for _, one := range wrapped.Unwrap() {
			all = append(all, refusals(one)...)
		}
		return all
	case interface{ Unwrap() error }:
		return refusals(wrapped.Unwrap())
	}
	return nil
}
