package lockgroup

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// Slot is a held slot, one of the n slots of a name.
type Slot struct {
	*multilock.Lock
	// Number counts from 1.
	Number int
}

// slotMark separates a name from the number of a slot. It is unlikely in an ordinary name.
const slotMark = "#slot-"

// MaxSlots is the largest number of slots of a name.
const MaxSlots = 1000

// SlotName returns the name of the lock for slot number i of name.
func SlotName(name string, i int) string { return name + slotMark + strconv.Itoa(i) }

// ParseSlotName splits a slot's name. ok is false for any other name.
func ParseSlotName(lock string) (name string, i int, ok bool) {
	at := strings.LastIndex(lock, slotMark)
	if at < 0 {
		return "", 0, false
	}
	i, err := strconv.Atoi(lock[at+len(slotMark):])
	if err != nil || i < 1 || SlotName(lock[:at], i) != lock {
		return "", 0, false
	}
	return lock[:at], i, true
}

// TryAcquireSlot takes one of the n slots of name without a live holder. The error is a *FullError if
// all slots are held.
//
// A slot is a lock, so at most n holders have a slot at a time. All hosts should use the same n: a
// host with a larger n also uses slots beyond the n of the others, which those do not count.
func TryAcquireSlot(ctx context.Context, src multilock.Source, name string, n int, t multilock.Terms) (*Slot, error) {
	if err := checkSlots(name, n); err != nil {
		return nil, err
	}
	free, held, err := survey(ctx, src, name, n)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, i := range free {
		lock, err := multilock.TryAcquire(ctx, src, SlotName(name, i), t)
		if err == nil {
			return &Slot{lock, i}, nil
		}
		if !errors.Is(err, multilock.ErrHeld) {
			return nil, err
		}
		errs = append(errs, err)
	}
	// A held slot may have a dead holder; watching for its heartbeat takes a while.
	slot, err := race(ctx, held, func(ctx context.Context, i int) (*multilock.Lock, error) {
		return multilock.TryAcquire(ctx, src, SlotName(name, i), t)
	})
	if slot == nil {
		err = full(ctx, name, n, errors.Join(append(errs, err)...))
	}
	return slot, err
}

// AcquireSlot waits for one of the n slots of name until ctx ends. It waits at a few slots at a
// time, and each attempt costs a request for each of these. The order of waiters is not defined,
// but all have equal chances. With Options.Fair they queue for the lock name.
func AcquireSlot(ctx context.Context, src multilock.Source, name string, n int, t multilock.Terms) (*Slot, error) {
	if err := checkSlots(name, n); err != nil {
		return nil, err
	}
	return multilock.InTurn(ctx, src, name, t, func(ctx context.Context, t multilock.Terms) (*Slot, error) {
		return waitForSlot(ctx, src, name, n, t)
	})
}

// waitForSlot waits at a few slots, and at others after each shift.
func waitForSlot(ctx context.Context, src multilock.Source, name string, n int, t multilock.Terms) (*Slot, error) {
	for {
		slot, err := queue(ctx, src, name, n, t)
		if slot != nil || !errors.Is(err, errShiftOver) {
			return slot, err
		}
		if ctx.Err() != nil { // the cause of ctx explains more than the end of a shift
			return nil, full(ctx, name, n, errors.Join(context.Cause(ctx), err))
		}
	}
}

const (
	// queues is how many slots a waiter waits at.
	queues = 8
	// shift is how long it waits there before it tries others.
	shift = 15 * time.Second
)

var errShiftOver = errors.New("the shift is over")

// queue waits for a free slot at some of the slots, for one shift unless these are all.
func queue(ctx context.Context, src multilock.Source, name string, n int, t multilock.Terms) (*Slot, error) {
	free, held, err := survey(ctx, src, name, n)
	if err != nil {
		return nil, err
	}
	at := slices.Concat(free, held)
	bounded := ctx
	if n > queues {
		at = at[:queues]
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeoutCause(ctx, shift/2+rand.N(shift), errShiftOver) //nolint:gosec // jitter needs no secrecy
		defer cancel()
	}
	slot, err := race(bounded, at, func(ctx context.Context, i int) (*multilock.Lock, error) {
		return multilock.Acquire(ctx, src, SlotName(name, i), t)
	})
	if slot == nil && !errors.Is(err, errShiftOver) {
		err = full(ctx, name, n, err)
	}
	return slot, err
}

func checkSlots(name string, n int) error {
	if multilock.Shareable(name) {
		return &source.InvalidError{What: "name with slots", Got: name, Why: "is that of a lock which readers share: its slots would not see them"}
	}
	if n < 1 || n > MaxSlots {
		return &source.InvalidError{What: "number of slots", Got: strconv.Itoa(n), Why: fmt.Sprintf("must be between 1 and %d", MaxSlots)}
	}
	return nil
}

// survey lists the slots that seem free and those that are held, in random order, so that waiters
// spread out.
func survey(ctx context.Context, src multilock.Source, name string, n int) (free, held []int, err error) {
	names, err := bounded.Call(ctx, src.Names)
	if err != nil {
		return nil, nil, err
	}
	taken := map[string]bool{}
	for _, lock := range names {
		taken[lock] = true
	}
	for _, zeroBased := range rand.Perm(n) { //nolint:gosec // fairness needs no secrecy
		if i := zeroBased + 1; taken[SlotName(name, i)] {
			held = append(held, i)
		} else {
			free = append(free, i)
		}
	}
	return free, held, nil
}

// race tries several slots at a time. The first acquired slot wins; race cancels the other attempts
// and releases what they acquired. It returns when all have ended.
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
			_ = e.lock.Release(context.WithoutCancel(ctx)) // no work runs under it; if this fails, it expires
		}
	}
	switch {
	case won != nil:
		return won, nil
	case failed != nil && ctx.Err() == nil:
		return nil, failed // an error matters more than held slots
	}
	return nil, errors.Join(failed, refused)
}

var errDecided = errors.New("another slot was taken")

// FullError means that every slot of a name is held.
type FullError struct {
	Name  string
	Slots int
	// Holders are the observed holders, at most one for each slot.
	Holders []*multilock.HeldError
}

func (e *FullError) Error() string {
	texts := []string{fmt.Sprintf("all %d slots of %q are held", e.Slots, e.Name)}
	for _, h := range e.Holders {
		_, number, _ := ParseSlotName(h.Name)
		texts = append(texts, fmt.Sprintf("slot %d by %s (%s)", number, h.Observation.Record.Holder, h.Observation.Why))
	}
	return strings.Join(texts, "; ")
}

// Is makes errors.Is(err, multilock.ErrHeld) true.
func (e *FullError) Is(target error) bool { return target == multilock.ErrHeld }

// full joins the errors of all slots: the cause of ctx with the observed holders, a FullError if all
// slots are held, or the other errors.
func full(ctx context.Context, name string, n int, err error) error {
	e := &FullError{Name: name, Slots: n, Holders: heldErrors(err)}
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

// heldErrors collects the HeldErrors in a tree of joined errors.
func heldErrors(err error) []*multilock.HeldError {
	if held, ok := err.(*multilock.HeldError); ok { //nolint:errorlint // the tree is walked here
		return []*multilock.HeldError{held}
	}
	switch wrapped := err.(type) { //nolint:errorlint // the same
	case interface{ Unwrap() []error }:
		var all []*multilock.HeldError
		for _, one := range wrapped.Unwrap() {
			all = append(all, heldErrors(one)...)
		}
		return all
	case interface{ Unwrap() error }:
		return heldErrors(wrapped.Unwrap())
	}
	return nil
}
