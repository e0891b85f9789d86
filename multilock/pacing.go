package multilock

import (
	"cmp"
	"context"
	"time"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock/source"
)

const (
	// firstPause bounds the first pause of all.
	firstPause = 2 * time.Millisecond
	// maxTryPause bounds the pauses of an acquisition that does not wait.
	maxTryPause = 20 * time.Millisecond
	// maxBack is the maximum backoff after this process held the lock, in multiples of the longest pause.
	// maxPromptBack is the maximum where waiters are notified at once that the lock is free.
	maxBack       = 4
	maxPromptBack = 200 * time.Microsecond
	// deferral is the extra delay after a wake-up for a waiter that has waited less than it expects to.
	deferral = 500 * time.Microsecond
)

// pacing decides how long an acquisition pauses between two attempts.
type pacing struct {
	pauses  bounded.Pauses
	wake    <-chan struct{} // signals that the lock may be free; nil if the source has no such signal
	turn    *source.Turn    // this process's record of its turns with the lock, or nil
	began   time.Time
	refused bool // an attempt found the lock held
}

// newPacing uses the caller's Poll, or else the pace of the source.
func newPacing(src Source, opt Options, m mode) pacing {
	poll := cmp.Or(opt.Poll, DefaultPoll)
	if m == ifFree {
		return pacing{pauses: bounded.Pauses{First: firstPause, Limit: min(poll, maxTryPause)}}
	}
	if paced, ok := src.(source.Paced); ok && opt.Poll == 0 {
		least, most := paced.Pace()
		return pacing{pauses: bounded.Pauses{Least: least, Limit: most}}
	}
	return pacing{pauses: bounded.Pauses{First: firstPause, Limit: poll}}
}

// begin begins a wait. A process that has just held the lock backs off first, so that others get a turn;
// with Fair, the queue takes care of that.
func (p *pacing) begin(ctx context.Context, src Source, a *acquisition) error {
	p.began = time.Now()
	if taking, ok := src.(source.TurnTaking); ok && !a.terms.Fair {
		if err := p.backOff(ctx, taking.Turns(), a); err != nil {
			return err
		}
	}
	if p.pauses.Least < firstInspection { // otherwise an inspection is due by then in any case
		a.inspection.due = time.Now().Add(firstInspection)
	}
	return nil
}

func (p *pacing) backOff(ctx context.Context, turns *source.Turns, a *acquisition) error {
	p.turn = turns.Of(a.name)
	p.pauses.Expect(p.turn.Waits())
	back := p.turn.StandBack(maxBack * p.pauses.Limit)
	if back == 0 {
		return nil
	}
	if turns.Prompt && p.subscribe(a.contender) {
		back = min(back, maxPromptBack)
	}
	return bounded.Sleep(ctx, back)
}

// subscribe requests the wake-up signal once, and reports whether this call got it.
func (p *pacing) subscribe(contender source.Contender) bool {
	if p.wake != nil {
		return false
	}
	p.wake = contender.Wake()
	return p.wake != nil
}

// acquired ends a wait.
func (p *pacing) acquired() {
	if p.turn != nil {
		p.turn.Took(time.Since(p.began), p.refused)
	}
}

// sleep waits for the pause, or until a wake-up.
func (p *pacing) sleep(ctx context.Context, pause time.Duration) error {
	woken, err := bounded.Wait(ctx, pause, p.wake)
	if !woken || err != nil {
		return err
	}
	p.pauses.Reset()
	return bounded.Sleep(ctx, time.Duration(p.pauses.Early()*float64(deferral)))
}
