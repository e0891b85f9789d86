package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
)

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

// acquire takes the lock, or one of the slots, and waits for it as long as it may. The
// number is that of the slot, 0 for the lock.
func (o *runOptions) acquire(ctx context.Context, e *env, src *openedSource, opt multilock.Options, limit waitLimit) (*multilock.Lock, int, error) {
	if !o.slots.set {
		lock, err := take(ctx, e, src, o.name, opt, limit, o.common)
		return lock, 0, err
	}
	acquire := lockgroup.TryAcquireSlot
	if limit.waits() {
		acquire = lockgroup.AcquireSlot
		var cancel context.CancelFunc
		ctx, cancel = limit.limited(ctx)
		defer cancel()
		defer startNotice(ctx, e, o.common, waitingForSlot(src, o.name, o.slots.value)).stop()
	}
	slot, err := acquire(ctx, src.locks, o.name, o.slots.value, opt)
	if err != nil {
		return nil, 0, err
	}
	return slot.Lock, slot.Number, nil
}

// waitingForSlot says who holds the slots.
func waitingForSlot(src *openedSource, name string, n int) noticeText {
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
			if seen, err := multilock.Inspect(ctx, src.locks, lock, multilock.Patience{}); err == nil && seen.State != multilock.StateFree {
				hosts = append(hosts, fmt.Sprintf("slot %d by %s", i, seen.Record.Holder))
			}
		}
		if len(hosts) == 0 {
			return text
		}
		return text + "; held: " + strings.Join(hosts, ", ")
	}
}
