package jointest

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// A participant holds a slot of the contended lock's name, its presence lock. Later it also holds the slot
// with the same number of each mark.
const (
	presence = ""
	markTold = "-told"
	markRead = "-read"
)

var marks = []string{markTold, markRead}

func (s Spec) lockName(number int, mark string) string {
	return lockgroup.SlotName(s.Name+mark, number)
}

// parseName is the inverse of lockName.
func (s Spec) parseName(name string) (number int, mark string, ok bool) {
	of, number, ok := lockgroup.ParseSlotName(name)
	mark, ours := strings.CutPrefix(of, s.Name)
	return number, mark, ok && ours && (mark == presence || slices.Contains(marks, mark))
}

// slots is large enough for the participants of several concurrent tests.
func (s Spec) slots() int { return min(2*s.Hosts+6, lockgroup.MaxSlots) }

func (h *host) options(command string) multilock.Options {
	return multilock.Options{TTL: h.ttl, User: h.User, Command: command}
}

func (h *host) inspect(ctx context.Context, name string) (multilock.Observation, error) {
	return multilock.Inspect(ctx, h.Locks, name, multilock.StalePolicy{})
}

// measureClock compares this host's clock with the source's. If the source's cannot be read, Examine has
// already reported that.
func (h *host) measureClock(ctx context.Context) error {
	keeper, ok := source.Ability[source.Timekeeper](h.Locks, source.TraitOneClock)
	if !ok {
		return nil
	}
	before := time.Now()
	now, err := bounded.Change(ctx, keeper.Now)
	if err != nil {
		return context.Cause(ctx)
	}
	ahead := before.Add(time.Since(before) / 2).Sub(now).Round(time.Millisecond).Seconds()
	h.Clock = &ahead
	return nil
}

// join acquires a presence lock. If it is granted although another host holds it, only a participant with
// another number can discover that.
func (h *host) join(ctx context.Context) error {
	for {
		slot, err := lockgroup.TryAcquireSlot(ctx, h.Locks, h.Name, h.slots(), h.options(h.Command))
		switch {
		case errors.Is(err, multilock.ErrHeld) && ctx.Err() == nil:
			return h.leftOpen(err.Error(), "see which processes hold them: multilock status")
		case err != nil:
			return err
		}
		if err = h.check(ctx, slot.Lock); err == nil {
			h.number, h.held = slot.Number, append(h.held, slot.Lock)
			h.Here(1)
			return nil
		}
		_ = release(slot.Lock)
		if !errors.Is(err, errUnsafe) {
			return err
		}
	}
}

// mark acquires one more lock, which shows this host's progress and its account to the others. It waits if a
// former participant still holds that lock.
func (h *host) mark(ctx context.Context, mark string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, h.limit, console.ErrWaitOver)
	defer cancel()
	lock, err := multilock.Acquire(ctx, h.Locks, h.lockName(h.number, mark), h.options(h.text(h.Command, h.harmed)))
	if err == nil {
		h.held = append(h.held, lock)
	}
	return err
}

// leave releases all locks concurrently, even after Ctrl-C. A lock that cannot be released expires.
func (h *host) leave() {
	var all sync.WaitGroup
	for _, lock := range h.held {
		all.Go(func() { _ = release(lock) })
	}
	all.Wait()
}

// release also works if the test was interrupted. An NFSv3 client of a busy server with NFSv4 clients has
// needed more than five seconds. After the TTL the lock is free anyway.
func release(lock *multilock.Lock) error {
	ctx, cancel := context.WithTimeout(context.Background(), ttl)
	defer cancel()
	return lock.Release(ctx)
}

// contend tries once to acquire the contended lock. If it succeeds, it has a turn.
func (h *host) contend(ctx context.Context) error {
	start := time.Now()
	lock, err := multilock.TryAcquire(ctx, h.Locks, h.Name, h.options(h.Command))
	h.tries++
	// All peers should find the lock held, even if an attempt takes long.
	length := max(h.hold, min(3*time.Since(start), h.ttl/3))
	var held *multilock.HeldError
	if errors.As(err, &held) {
		for _, p := range h.peers {
			if held.Observation.State == multilock.StateHeld && p.record.Holder.Identity == held.Observation.Record.Holder.Identity {
				p.Refused++
			}
		}
		return nil
	}
	if err != nil {
		return err
	}
	err = h.turn(ctx, lock, length)
	h.next = time.Now().Add(length)
	return err
}

// turn holds the lock for a while, and verifies that the source shows it as this host's.
func (h *host) turn(ctx context.Context, lock *multilock.Lock, length time.Duration) error {
	fence, err := lock.Fence(ctx)
	if err == nil || errors.Is(err, multilock.ErrUnsupported) { // if unsupported, it is 0
		err = h.check(ctx, lock)
	}
	if err == nil {
		err = bounded.Sleep(ctx, length)
	}
	if err == nil {
		err = h.check(ctx, lock)
	}
	start := time.Now()
	released := release(lock)
	h.parting = max(h.parting, time.Since(start))
	if errors.Is(err, errUnsafe) {
		return err
	}
	err = errors.Join(err, released)
	if lost := (*multilock.LostError)(nil); errors.As(err, &lost) {
		return h.lost(lost)
	}
	if err != nil {
		return err
	}
	h.Turns++
	if fence == 0 {
		return nil
	}
	h.Fences = append(h.Fences, fence)
	if n := len(h.Fences); n > 1 && fence <= h.Fences[n-2] {
		return h.unsafe("the fencing tokens of this host do not increase: %d came after %d", fence, h.Fences[n-2])
	}
	return nil
}

// lost distinguishes a lock that was taken by another host from one that this host renewed too late: without
// heartbeats, others may take it over.
func (h *host) lost(lost *multilock.LostError) error {
	if lost.Err == nil || lost.Silence >= h.ttl-h.ttl/5 {
		return h.fellOut(lost)
	}
	return h.unsafe("this host lost the lock while it held it (unless someone broke it by force): %v", lost)
}

// check verifies that the source shows a lock of this host as this host's. A single inspection may come from
// a cache, so it inspects several times.
func (h *host) check(ctx context.Context, lock *multilock.Lock) error {
	own := lock.Record()
	var seen multilock.Observation
	for n := range 3 {
		var err error
		if n > 0 {
			err = bounded.Sleep(ctx, h.pause)
		}
		if err == nil {
			seen, err = h.inspect(ctx, own.Name)
		}
		if err != nil || (seen.State != multilock.StateFree && seen.Record.Token == own.Token) {
			return err
		}
	}
	if lock.Remaining() == 0 {
		return h.fellOut(lock.Verify(ctx)) // suspended for so long that others could take it over
	}
	whose := "free"
	if seen.State != multilock.StateFree {
		whose = "held by " + seen.Record.Holder.String()
	}
	return h.unsafe("this host acquired the lock %q, and yet it was %s", own.Name, whose)
}

// tidy removes the locks and remains of dead participants of this test or an earlier one. It gives up if that
// takes too long, because they do no harm.
func (h *host) tidy(ctx context.Context) error {
	rounds, left := 0, true // NFS keeps a removed file for a moment if it was open
	return h.until(ctx, 2*h.ttl, func() bool { return !left || rounds == 3 }, func(ctx context.Context) (err error) {
		rounds++
		left, err = h.tidyOnce(ctx)
		if ctx.Err() != nil { // the source may have returned another error
			err = context.Cause(ctx)
		}
		return err
	}, func(context.Context) error { return nil })
}

// tidyOnce breaks locks with dead holders, and removes the remains of releases; left is true if there were
// any.
func (h *host) tidyOnce(ctx context.Context) (left bool, err error) {
	names, err := bounded.Call(ctx, h.Locks.Names)
	for _, name := range names {
		if _, _, ok := h.parseName(name); !ok && name != h.Name {
			continue
		}
		seen, err := h.inspect(ctx, name)
		switch {
		case err != nil:
		case seen.State == multilock.StateFree || seen.Orphan: // Break would wait long for what NFS removes soon
			left = true
			if group, ok := source.Ability[source.Group](h.Locks, source.TraitCheapBarrier); ok {
				_, err = bounded.Call(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, group.Tidy(ctx, name) })
			}
		case seen.State != multilock.StateHeld:
			_, err = multilock.Break(ctx, h.Locks, name, multilock.BreakOptions{Token: seen.Record.Token})
		}
		// Without permission, the lock of another user's dead participant stays.
		if err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, multilock.ErrHeld) && !errors.Is(err, multilock.ErrFree) {
			return false, err
		}
	}
	return left, err
}
