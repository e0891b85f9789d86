package lockgroup

import (
	"time"

	"github.com/multilock/go/internal/span"
	"github.com/multilock/go/multilock"
)

// latest returns the last tick not after now, for ticks with a phase.
func (e Every) latest(now time.Time) time.Time {
	if e.zone != nil {
		return e.onDay(e.dayOfTick(now))
	}
	shift := e.shift()
	return now.UTC().Add(-shift).Truncate(e.span).Add(shift)
}

// shift is the offset of the ticks from the multiples of the span since year 1, the zero time of
// package time.
func (e Every) shift() time.Duration {
	epoch := time.Unix(0, 0)
	return epoch.Sub(epoch.Truncate(e.span)) + e.phase
}

// dayOfTick returns the calendar day of the last tick not after now.
func (e Every) dayOfTick(now time.Time) int64 {
	days := int64(e.span / span.Day)
	today := dayOf(now.In(e.zone))
	day := today - today%days + days
	for e.onDay(day).After(now) {
		day -= days
	}
	return day
}

// step returns the tick n after the latest one at a moment; n may be negative.
func (e Every) step(from time.Time, n int) time.Time {
	switch {
	case !e.phased:
		return from.Add(time.Duration(n) * e.span)
	case e.zone != nil:
		return e.onDay(e.dayOfTick(from) + int64(n)*int64(e.span/span.Day))
	}
	return e.latest(from).Add(time.Duration(n) * e.span)
}

// Next returns the tick after this one, when the job is to run again. Without a phase it is only the
// expected time.
func (e Every) Next(tick time.Time) time.Time { return e.step(tick, 1) }

// missed counts the ticks between the tick of the last run and that of a run now. Without a phase the
// run moves its tick, so missed rounds to the nearest number.
func (e Every) missed(last, tick time.Time) int {
	if last.IsZero() || e.IsZero() {
		return 0
	}
	between := tick.Sub(last)
	switch {
	case e.zone != nil: // its days may be longer or shorter than 24 hours
		between = time.Duration(e.dayOfTick(tick)-e.dayOfTick(e.nearest(last))) * span.Day
	case e.phased: // the last tick may be of another phase
		between = tick.Sub(e.nearest(last))
	}
	return max(int(between.Round(e.span)/e.span)-1, 0)
}

// Missed counts the ticks without a run after the last result, by the source's clock. It omits a tick
// that may still run.
func (e Every) Missed(now time.Time, last multilock.Result) int {
	if last.Tick.IsZero() || e.inFuture(now, &last) {
		return 0
	}
	if e.phased {
		now = e.nearest(now)
	}
	return e.missed(last.Tick, now)
}
