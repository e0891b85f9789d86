package batch

import (
	"context"
	"errors"
	"time"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock"
)

// Units of other holders are inspected at growing intervals, because a holder may have died.
const (
	firstLook = 250 * time.Millisecond
	lastLook  = 15 * time.Second
)

// lookAfter inspects the units of other holders while this host is idle.
func (b *Batch) lookAfter() {
	pause := bounded.Pauses{First: firstLook, Limit: lastLook, Chance: b.localQueue.chance}
	for b.idleUntil() {
		if b.lookOnce() {
			pause.Reset()
		}
		b.localQueue.pauseFor(b.taking, pause.Next())
	}
}

// idleUntil waits until this host is idle. It returns false when the batch is over.
func (b *Batch) idleUntil() bool {
	over := false
	err := b.localQueue.await(b.taking, func() bool {
		over = b.localQueue.over()
		return over || b.localQueue.waits()
	})
	return err == nil && !over
}

// lookOnce reports whether there is something to claim now.
func (b *Batch) lookOnce() bool {
	if !b.isBusy() {
		b.ask(b.taking)
	}
	if b.poll(b.taking) || b.pollParts(b.taking) {
		return true
	}
	b.localQueue.mu.Lock()
	i, found := b.localQueue.anyElsewhere() // one at a time: a holder has many jobs
	b.localQueue.mu.Unlock()
	return found && b.lookAt(i)
}

// lookAt breaks the lock of a unit if its holder is dead. It reports whether the unit has become
// free.
func (b *Batch) lookAt(i int) (free bool) {
	u := b.unit(i)
	_, err := multilock.Break(b.taking, b.src, u.name(), multilock.BreakOptions{StalePolicy: b.opt.StalePolicy})
	switch {
	case errors.Is(err, multilock.ErrFree):
	case err == nil:
		b.localQueue.change(func() { b.takenOver++ })
	case errors.Is(err, multilock.ErrHeld), b.taking.Err() != nil:
		return false
	default:
		b.note(err)
		return false
	}
	if u.of.From > 0 && b.recorded.has(b.taking, b.src, u.name()) {
		b.note(b.readUnit(b.taking, i))
	}
	b.localQueue.change(func() {
		if u := &b.localQueue.units[i]; u.state == unitElsewhere {
			u.left = true
			b.localQueue.set(i, unitOpen)
		}
	})
	return !u.retracted
}

// note keeps the first error with updates.
func (b *Batch) note(err error) {
	if err == nil || errors.Is(err, context.Canceled) || b.isEnd(err) {
		return
	}
	b.localQueue.change(func() {
		if b.trouble == nil {
			b.trouble = err
		}
	})
}
