package lockgroup

import (
	"context"
	"time"

	"github.com/multilock/go/internal/bounded"
)

// inspect looks at the holders now and then, and clears the dead away.
func (b *Barrier) inspect(ctx context.Context, cancel context.CancelCauseFunc) {
	defer b.holders.watches.Wait()
	for pause := min(firstInspect, b.opt.Inspect); ; {
		start := time.Now()
		err := b.holders.look(ctx, b.concerns)
		if err == nil {
			b.holders.clear(ctx, b.stuck(cancel))
		}
		if err != nil {
			cancel(err) // what ended ctx before stays its cause
			return
		}
		if err := bounded.Sleep(ctx, pause); err != nil {
			return
		}
		pause = min(max(2*pause, leisure*time.Since(start)), b.opt.Inspect)
	}
}

// stuck ends the wait because the dead cannot be cleared away, so that it would
// last for ever. Members' work may be done by somebody who can.
func (b *Barrier) stuck(cancel context.CancelCauseFunc) func(error) {
	if len(b.opt.Members) > 0 {
		return func(error) {}
	}
	return cancel
}

const (
	// firstInspect is when the second look at the holders comes.
	firstInspect = 2 * time.Second
	// lastLooks bounds the look at what is in the way when the time is over.
	lastLooks = 2 * time.Second
)

// concerns says whether a lock is in the barrier's way.
func (b *Barrier) concerns(name string) bool {
	return len(b.opt.Members) == 0 || b.results.awaited(name)
}

// lastLook sees how things stand when the time is over: the barrier may have
// opened between the last poll and now. Otherwise the wait's own error stays.
func (b *Barrier) lastLook(ctx context.Context, waited error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLooks)
	defer cancel()
	if b.results != nil {
		b.results.rest = time.Time{}
	}
	if open, _, err := b.ask(ctx); err == nil && open {
		return b.opened(ctx)
	}
	_ = b.holders.look(ctx, b.concerns) // what was seen before has to do then
	return waited
}
