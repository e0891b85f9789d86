//go:build linux

package soak_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/locktest"
)

// hold is one acquisition, from its acquirer's point of view.
type hold struct {
	*worker
	name, token string
	lock        *multilock.Lock
	written     entry // what the register has of it
}

// event reads the clock before the caller reads the lock's own word, so that no
// belief ever seems to last longer than it did.
func (h *hold) event(kind locktest.Kind) locktest.Event {
	return locktest.Event{Kind: kind, Name: h.name, Token: h.token, Time: locktest.Now()}
}

// inside is what the lock protects.
func (h *hold) inside(ctx context.Context) error {
	if h.rng.IntN(2) == 0 {
		if err := h.fence(); err != nil {
			return err
		}
	}
	first, err := h.entry()
	if err != nil {
		return err
	}
	if err := h.register.enter(h.name, first); err != nil {
		return err
	}
	h.written = first
	if err := h.linger(ctx, h.stay()); err != nil {
		return err
	}
	if h.lock.Remaining() == 0 {
		return multilock.ErrLost
	}
	return h.register.leave(h.name, h.written)
}

// entry is what may be written into the register now.
func (h *hold) entry() (entry, error) {
	now := locktest.Now()
	remaining := h.lock.Remaining()
	if remaining == 0 || h.lock.Context().Err() != nil {
		return entry{}, multilock.ErrLost
	}
	return entry{Proc: h.Proc, Token: h.token, Until: now + remaining}, nil
}

// stay is short mostly, and at times long enough for the lock to live on nothing
// but its renewals.
func (h *hold) stay() time.Duration {
	switch h.rng.IntN(10) {
	case 0:
		return h.upTo(h.TTL * 2)
	case 1, 2, 3:
		return h.upTo(h.TTL / 2)
	}
	return h.upTo(h.TTL / 20)
}

// linger stays inside, and tells of every renewal.
func (h *hold) linger(ctx context.Context, stay time.Duration) error {
	end := time.NewTimer(stay)
	defer end.Stop()
	look := time.NewTicker(h.TTL / 40)
	defer look.Stop()
	for {
		select {
		case <-end.C:
			return nil
		case <-ctx.Done():
			return nil
		case <-h.lock.Context().Done():
			return multilock.ErrLost
		case <-look.C:
		}
		if err := h.prolong(); err != nil {
			return err
		}
	}
}

// prolong writes down that the lock has been renewed, if it has.
func (h *hold) prolong() error {
	next, err := h.entry()
	if err != nil || next.Until < h.written.Until+h.TTL/20 {
		return err
	}
	e := h.event(locktest.Renewed)
	e.Until = next.Until
	if err := h.log.Record(e); err != nil {
		return err
	}
	if err := h.register.extend(h.name, h.written, next); err != nil {
		return err
	}
	h.written = next
	return nil
}

func (h *hold) fence() error {
	e := h.event(locktest.Fenced)
	e.Start = e.Time
	number, err := h.lock.Fence(context.Background())
	if errors.Is(err, multilock.ErrLost) {
		return err
	}
	if err != nil {
		return h.doubt("fence", e.Start, err)
	}
	e.Fence, e.Time = number, locktest.Now()
	return h.log.Record(e)
}

// release gives the lock back, in any case. A server that does not answer is
// waited for.
func (h *hold) release(before error) error {
	lost := errors.Is(before, multilock.ErrLost)
	if !lost {
		if err := h.log.Record(h.event(locktest.Releasing)); err != nil {
			return err
		}
	}
	start := locktest.Now()
	err := h.lock.Release(context.Background())
	switch {
	case lost, errors.Is(err, multilock.ErrLost):
		return h.log.Record(h.event(locktest.Lost))
	case err != nil:
		return h.doubt("release", start, err)
	}
	return h.log.Record(h.event(locktest.Released))
}

// doubt notes a call that gave no answer. The driver counts and shows them.
func (h *hold) doubt(call string, start time.Duration, cause error) error {
	fmt.Fprintf(os.Stderr, "%s: %s: %v\n", h.name, call, cause)
	e := h.event(locktest.Unsure)
	e.Start = start
	return h.log.Record(e)
}
