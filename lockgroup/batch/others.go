package batch

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/internal/parallel"
	"github.com/multilock/go/multilock"
)

// What others hold is looked at in growing intervals from firstLook to lastLook: its holder
// may have died.
const (
	firstLook = 250 * time.Millisecond
	lastLook  = 15 * time.Second
)

// lookAfter looks after what others hold, as long as there is nothing else to be done
// here, whatever the number of workers.
func (b *Batch) lookAfter() {
	pause := bounded.Pauses{First: firstLook, Limit: lastLook, Chance: b.hands.chance}
	for b.idleUntil() {
		if b.lookOnce() {
			pause.Reset()
		}
		b.hands.pauseFor(b.taking, pause.Next())
	}
}

// idleUntil waits until there is nothing to be done here but to look after others. It
// reports false when the batch is over.
func (b *Batch) idleUntil() bool {
	over := false
	err := b.hands.await(b.taking, func() bool {
		over = b.hands.over()
		return over || b.hands.waits()
	})
	return err == nil && !over
}

// lookOnce reports whether something can be taken now.
func (b *Batch) lookOnce() bool {
	width := b.opt.Workers
	if b.board != nil {
		if !b.isBusy() {
			b.ask(b.taking)
		}
		if b.hear(b.taking) || b.hearOfParts(b.taking) {
			return true
		}
		width = 1 // a holder has many jobs
	}
	b.hands.mu.Lock()
	units := b.hands.someElsewhere(width)
	b.hands.mu.Unlock()
	var free atomic.Bool
	_ = parallel.Do(width, len(units), func(k int) error {
		if b.lookAt(units[k]) {
			free.Store(true)
		}
		return nil
	})
	return free.Load()
}

// lookAt looks at a unit that somebody else holds, and clears away a dead holder. It reports
// whether it is free that was not.
func (b *Batch) lookAt(i int) (free bool) {
	u := b.unit(i)
	_, err := multilock.Break(b.taking, b.src, b.name(&u), multilock.BreakOptions{StalePolicy: b.opt.StalePolicy})
	switch {
	case errors.Is(err, multilock.ErrFree):
	case err == nil:
		b.hands.change(func() { b.takenOver++ })
	case errors.Is(err, multilock.ErrHeld), b.taking.Err() != nil:
		return false
	default:
		b.note(err)
		return false
	}
	if u.of.From > 0 && b.recorded.has(b.taking, b.src, b.name(&u)) {
		b.note(b.readUnit(b.taking, i))
	}
	b.hands.change(func() {
		if u := &b.hands.units[i]; u.state == unitElsewhere {
			u.left = true
			b.hands.set(i, unitOpen)
		}
	})
	return !u.retracted
}

// note keeps the first error with the news.
func (b *Batch) note(err error) {
	if err == nil || errors.Is(err, context.Canceled) || b.isEnd(err) {
		return
	}
	b.hands.change(func() {
		if b.trouble == nil {
			b.trouble = err
		}
	})
}
