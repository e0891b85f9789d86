package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
)

// slotted is the part of "run" that takes one of several slots instead of the
// one lock of a name.
type slotted struct {
	slots number
	slot  int    // the one that was taken, from 1
	asked string // the name under which it is one
}

func (o *runOptions) checkSlots(command string) error {
	switch {
	case !o.slots.set:
		return nil
	case o.slots.value < 1 || o.slots.value > lockgroup.MaxSlots:
		return usagef(command, "--slots %d: choose a number from 1 to %d", o.slots.value, lockgroup.MaxSlots)
	case o.failAfter.set:
		return usagef(command, "--fail-after and --slots contradict each other: it counts the refusals by one holder")
	}
	return nil
}

// acquire takes the lock, or one of the slots, and waits for it as long as it may.
func (o *runOptions) acquire(ctx context.Context, e *env, src *source, opt multilock.Options, limit waitLimit) (*multilock.Lock, error) {
	if !o.slots.set {
		return take(ctx, e, src, o.name, opt, limit, o.common)
	}
	if o.slot > 0 {
		o.name = o.asked // not the first time
	}
	slot, err := takeSlot(ctx, e, src, opt, limit, o)
	if err != nil {
		return nil, err
	}
	o.asked, o.slot, o.name = o.name, slot.Number, slot.Record().Name
	return slot.Lock, nil
}

func takeSlot(ctx context.Context, e *env, src *source, opt multilock.Options, limit waitLimit, o *runOptions) (*lockgroup.Slot, error) {
	if !limit.waits() {
		return lockgroup.TryAcquireSlot(ctx, src.locks, o.name, o.slots.value, opt)
	}
	ctx, cancel := limit.limited(ctx)
	defer cancel()
	n := startNotice(ctx, e, o.common, waitingForSlot(src, o.name, o.slots.value))
	defer n.stop()
	return lockgroup.AcquireSlot(ctx, src.locks, o.name, o.slots.value, opt)
}

// jobName is what the job is told that its lock's name is.
func (o *runOptions) jobName() string {
	if o.slot > 0 {
		return o.asked
	}
	return o.name
}

// waitingForSlot says who holds the slots.
func waitingForSlot(src *source, name string, n int) noticeText {
	return func(ctx context.Context, waited time.Duration) string {
		names, err := src.locks.Names(ctx)
		if err != nil {
			return ""
		}
		text := fmt.Sprintf("waiting for one of the %d slots of %q, %s so far", n, name, short(waited))
		var hosts []string
		for _, lock := range names {
			of, i, ok := lockgroup.ParseSlotName(lock)
			if !ok || of != name || i > n || len(hosts) == most {
				continue
			}
			if seen, err := multilock.Inspect(ctx, src.locks, lock, multilock.Patience{}); err == nil && seen.State != multilock.Free {
				hosts = append(hosts, fmt.Sprintf("slot %d by %s", i, seen.Record.Holder))
			}
		}
		if len(hosts) == 0 {
			return text
		}
		return text + "; held: " + strings.Join(hosts, ", ")
	}
}
