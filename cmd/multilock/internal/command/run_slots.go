package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
)

func (o *runOptions) checkSlots(command string) error {
	switch {
	case !o.slots.Given:
		return nil
	case o.slots.Value < 1 || o.slots.Value > lockgroup.MaxSlots:
		return console.Usagef(command, "--slots %d: choose a number from 1 to %d", o.slots.Value, lockgroup.MaxSlots)
	case o.failAfter.Given:
		return console.Usagef(command, "--fail-after and --slots contradict each other: it counts the refusals by one holder")
	}
	return nil
}

// acquire takes the lock, or one of the slots, and waits for it as long as it may. The
// number is that of the slot, 0 for the lock.
func (o *runOptions) acquire(ctx context.Context, e *Env, src *place.Source, opt multilock.Options, limit console.WaitLimit) (*multilock.Lock, int, error) {
	if !o.slots.Given {
		lock, err := take(ctx, e, src, o.Name, opt, limit, o.Output)
		return lock, 0, err
	}
	acquire := lockgroup.TryAcquireSlot
	if limit.Waits() {
		acquire = lockgroup.AcquireSlot
		var cancel context.CancelFunc
		ctx, cancel = limit.Limited(ctx)
		defer cancel()
		defer show.StartNotice(ctx, e.Env, o.Output, waitingForSlot(src, o.Name, o.slots.Value)).Stop()
	}
	slot, err := acquire(ctx, src.Locks, o.Name, o.slots.Value, opt)
	if err != nil {
		return nil, 0, err
	}
	return slot.Lock, slot.Number, nil
}

// waitingForSlot says who holds the slots.
func waitingForSlot(src *place.Source, name string, n int) show.NoticeText {
	return func(ctx context.Context, waited time.Duration) string {
		names, err := src.Locks.Names(ctx)
		if err != nil {
			return ""
		}
		text := fmt.Sprintf("waiting for one of the %d slots of %q, %s so far", n, name, console.Short(waited))
		var hosts []string
		for _, lock := range names {
			of, i, ok := lockgroup.ParseSlotName(lock)
			if !ok || of != name || i > n || len(hosts) == show.Most {
				continue
			}
			if seen, err := multilock.Inspect(ctx, src.Locks, lock, multilock.Patience{}); err == nil && seen.State != multilock.StateFree {
				hosts = append(hosts, fmt.Sprintf("slot %d by %s", i, seen.Record.Holder))
			}
		}
		if len(hosts) == 0 {
			return text
		}
		return text + "; held: " + strings.Join(hosts, ", ")
	}
}
