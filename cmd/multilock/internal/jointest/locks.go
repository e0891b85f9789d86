package jointest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// A participant holds a presence lock, and later a lock for each of the marks.
const (
	presence        = ""
	markTold        = "told"
	markRead        = "read"
	maxParticipants = 1000
)

var marks = []string{markTold, markRead}

func (s Spec) lockName(number int, mark string) string {
	return strings.TrimSuffix(fmt.Sprintf("%s-%d-%s", s.Name, number, mark), "-")
}

// parseName is the inverse of lockName.
func (s Spec) parseName(name string) (number int, mark string, ok bool) {
	rest, _ := strings.CutPrefix(name, s.Name+"-")
	digits, mark, _ := strings.Cut(rest, "-")
	number, _ = strconv.Atoi(digits)
	known := mark == presence || slices.Contains(marks, mark)
	return number, mark, known && number >= 1 && number <= maxParticipants && name == s.lockName(number, mark)
}

func (h *host) options(command string) multilock.Options {
	return multilock.Options{TTL: h.ttl, User: h.User, Command: command}
}

func (h *host) inspect(ctx context.Context, name string) (multilock.Sighting, error) {
	return multilock.Inspect(ctx, h.Locks, name, multilock.StalePolicy{})
}

// measureClock compares this host's clock with the source's. If that cannot be read,
// Examine has reported it.
func (h *host) measureClock(ctx context.Context) error {
	keeper, ok := source.Ability[source.Timekeeper](h.Locks, source.TraitOneClock)
	if !ok {
		return nil
	}
	before := time.Now()
	now, err := bounded.Call(ctx, keeper.Now)
	if err != nil {
		return context.Cause(ctx)
	}
	ahead := before.Add(time.Since(before) / 2).Sub(now).Round(time.Millisecond).Seconds()
	h.Clock = &ahead
	return nil
}

// join acquires the first presence lock that is free. If one is granted though another
// host holds it, the others can learn it only from a participant with another number.
func (h *host) join(ctx context.Context) error {
	for h.number = 1; h.number <= maxParticipants; h.number++ {
		name := h.lockName(h.number, presence)
		lock, err := multilock.TryAcquire(ctx, h.Locks, name, h.options(h.Command))
		if errors.Is(err, fs.ErrPermission) { // only its owner may clear away what a dead participant left
			if seen, unseen := h.inspect(ctx, name); unseen == nil && seen.State != multilock.StateFree {
				continue
			}
		}
		if errors.Is(err, multilock.ErrHeld) {
			continue
		}
		if err != nil {
			return err
		}
		if err = h.check(ctx, lock); err == nil {
			h.held = append(h.held, lock)
			h.Here(1)
			return nil
		}
		_ = release(lock)
		if !errors.Is(err, errUnsafe) {
			return err
		}
	}
	return &noResult{fmt.Sprintf("all %d locks named %s-NUMBER are held", maxParticipants, h.Name), "see who holds them: multilock status"}
}

// mark acquires one more lock, which shows the others how far this host is, and its
// account. It waits for one that an earlier participant has left.
func (h *host) mark(ctx context.Context, mark string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, h.limit, console.ErrWaitOver)
	defer cancel()
	lock, err := multilock.Acquire(ctx, h.Locks, h.lockName(h.number, mark), h.options(h.text(h.Command, h.harmed)))
	if err == nil {
		h.held = append(h.held, lock)
	}
	return err
}

// leave releases all at once, also after Ctrl-C. A lock that cannot be released expires.
func (h *host) leave() {
	var all sync.WaitGroup
	for _, lock := range h.held {
		all.Go(func() { _ = release(lock) })
	}
	all.Wait()
}

// release also works if the test was interrupted. A v3 client of a busy NFS server with
// v4 clients has needed more than five seconds; after the TTL the lock is free anyway.
func release(lock *multilock.Lock) error {
	ctx, cancel := context.WithTimeout(context.Background(), ttl)
	defer cancel()
	return lock.Release(ctx)
}

// contend tries once to acquire the contended lock. If that succeeds, it has a turn.
func (h *host) contend(ctx context.Context) error {
	start := time.Now()
	lock, err := multilock.TryAcquire(ctx, h.Locks, h.Name, h.options(h.Command))
	h.tries++
	// All others should find the lock held, also where an attempt takes long.
	length := max(h.hold, min(3*time.Since(start), h.ttl/3))
	var held *multilock.HeldError
	if errors.As(err, &held) {
		h.blocker = console.HeldBy(held.Sighting)
		for _, p := range h.peers {
			if held.Sighting.State == multilock.StateHeld && p.holder.Identity == held.Sighting.Record.Holder.Identity {
				p.Refused++
				h.blocker = ""
			}
		}
		return nil
	}
	if err != nil {
		return err
	}
	h.blocker = ""
	err = h.turn(ctx, lock, length)
	h.next = time.Now().Add(length)
	return err
}

// turn holds the lock for a while, and verifies that it is this host's.
func (h *host) turn(ctx context.Context, lock *multilock.Lock, length time.Duration) error {
	fence, err := lock.Fence(ctx)
	if err == nil || errors.Is(err, multilock.ErrUnsupported) { // then it is 0
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
		return h.unsafe("the fencing numbers of this host's turns do not grow: %d came after %d", fence, h.Fences[n-2])
	}
	return nil
}

// lost distinguishes a lock that was taken away from one that this host renewed too
// late: without heartbeats, others may take it.
func (h *host) lost(lost *multilock.LostError) error {
	if lost.Err == nil || lost.Silence >= h.ttl-h.ttl/5 {
		return h.fellOut(lost)
	}
	return h.unsafe("the lock was taken away from this host while it held it, unless it was broken by force: %v", lost)
}

// check verifies that the source shows a lock of this host as this host's. An inspection
// may come from a cache, so there are several.
func (h *host) check(ctx context.Context, lock *multilock.Lock) error {
	own := lock.Record()
	var seen multilock.Sighting
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
		return h.fellOut(lock.Verify(ctx)) // suspended for so long that others could take it
	}
	whose := "free"
	if seen.State != multilock.StateFree {
		whose = "held by " + seen.Record.Holder.String()
	}
	return h.unsafe("this host was given the lock %q, and all the same it was %s", own.Name, whose)
}

// tidy clears away what dead participants left in this test or an earlier one. What
// takes too long stays for the next user of the locks: it is in no one's way.
func (h *host) tidy(ctx context.Context) error {
	rounds, left := 0, true // NFS keeps a file that was removed while open for another moment
	return h.until(ctx, 2*h.ttl, func() bool { return !left || rounds == 3 }, func(ctx context.Context) (err error) {
		rounds++
		left, err = h.tidyOnce(ctx)
		if ctx.Err() != nil { // a source may return another error then
			err = context.Cause(ctx)
		}
		return err
	}, func() error { return nil })
}

// tidyOnce breaks locks whose holder is dead, and removes what a release may have left;
// then left is true.
func (h *host) tidyOnce(ctx context.Context) (left bool, err error) {
	names, err := bounded.Call(ctx, h.Locks.Names)
	for _, name := range names {
		if _, _, ok := h.parseName(name); !ok && name != h.Name {
			continue
		}
		seen, err := h.inspect(ctx, name)
		switch {
		case err != nil:
		case seen.State == multilock.StateFree || seen.Limbo: // Break would wait long for what NFS removes soon
			left = true
			if group, ok := source.Ability[source.Group](h.Locks, source.TraitCheapBarrier); ok {
				_, err = bounded.Call(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, group.Tidy(ctx, name) })
			}
		case seen.State != multilock.StateHeld:
			_, err = multilock.Break(ctx, h.Locks, name, multilock.BreakOptions{Token: seen.Record.Token})
		}
		// The lock of a dead participant of another user stays.
		if err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, multilock.ErrHeld) && !errors.Is(err, multilock.ErrFree) {
			return false, err
		}
	}
	return left, err
}
