package batch

import (
	"errors"
	"time"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock"
)

// Units of other holders are inspected at growing intervals, because a holder may have died.
const (
	firstLook = 250 * time.Millisecond
	lastLook  = 15 * time.Second
	// growthPause is the pause between two checks of an idle host whether the list has grown.
	growthPause = time.Minute
)

// lookAfter inspects the units of other holders while this host is idle.
func (c *claimer) lookAfter() {
	pause := bounded.Pauses{First: firstLook, Limit: lastLook, Chance: c.schedule.chance}
	asked := time.Now()
	for c.idleUntil() {
		if time.Since(asked) >= growthPause {
			asked = time.Now()
			c.askGrown()
		}
		if c.lookOnce() {
			pause.Reset()
		}
		c.schedule.pauseFor(c.taking, pause.Next())
	}
}

// idleUntil waits until this host is idle. It returns false when the batch is over.
func (c *claimer) idleUntil() bool {
	over := false
	err := c.schedule.await(c.taking, func() bool {
		over = c.schedule.over()
		return over || c.schedule.waits()
	})
	return err == nil && !over
}

// lookOnce reports whether there is something to claim now.
func (c *claimer) lookOnce() bool {
	if !c.schedule.isBusy() {
		c.exchange.ask(c.taking)
	}
	if c.exchange.poll(c.taking) || c.exchange.pollParts(c.taking) {
		return true
	}
	c.schedule.mu.Lock()
	i, found := c.schedule.anyElsewhere() // one at a time: a holder has many jobs
	c.schedule.mu.Unlock()
	return found && c.lookAt(i)
}

// lookAt breaks the lock of a unit if its holder is dead. It reports whether the unit has become free.
func (c *claimer) lookAt(i int) (free bool) {
	u := c.schedule.unit(i)
	_, err := multilock.Break(c.taking, c.src, u.name(), multilock.BreakOptions{StalePolicy: c.opt.StalePolicy})
	switch {
	case errors.Is(err, multilock.ErrFree):
	case err == nil:
		c.schedule.change(func() { c.schedule.takenOver++ })
	case errors.Is(err, multilock.ErrHeld), c.taking.Err() != nil:
		return false
	default:
		c.exchange.note(err)
		return false
	}
	if u.of.From > 0 && c.exchange.recorded.has(c.taking, c.src, u.name()) {
		c.exchange.note(c.exchange.readUnit(c.taking, i))
	}
	c.schedule.change(func() {
		if u := &c.schedule.units[i]; u.state == unitElsewhere {
			u.left = true
			c.schedule.set(i, unitOpen)
		}
	})
	return !u.retracted
}
