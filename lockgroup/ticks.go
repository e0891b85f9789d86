package lockgroup

import (
	"time"

	"github.com/multilock/go/internal/span"
	"github.com/multilock/go/multilock"
)

// latest is the last tick that is not after a moment, of ticks with a phase.
func (e Every) latest(now time.Time) time.Time {
	if e.zone != nil {
		return e.onDay(e.dayOfTick(now))
	}
	shift := e.shift()
	return now.UTC().Add(-shift).Truncate(e.span).Add(shift)
}

// shift is from the multiples of the span that package time counts, since the year 1, to
// the ticks.
func (e Every) shift() time.Duration {
	epoch := time.Unix(0, 0)
	return epoch.Sub(epoch.Truncate(e.span)) + e.phase
}

// dayOfTick is the day of the calendar that has the last tick which is not after a moment.
func (e Every) dayOfTick(now time.Time) int64 {
	days := int64(e.span / span.Day)
	today := dayOf(now.In(e.zone))
	day := today - today%days + days
	for e.onDay(day).After(now) {
		day -= days
	}
	return day
}

// step is the tick that is n later than the latest at a moment; earlier if n is negative.
func (e Every) step(from time.Time, n int) time.Time {
	switch {
	case !e.phased:
		return from.Add(time.Duration(n) * e.span)
	case e.zone != nil:
		return e.onDay(e.dayOfTick(from) + int64(n)*int64(e.span/span.Day))
	}
	return e.latest(from).Add(time.Duration(n) * e.span)
}

// Next is the tick after one: when the job is to run again. Without a phase the ticks follow
// the runs, and it is when a run is expected.
func (e Every) Next(tick time.Time) time.Time { return e.step(tick, 1) }

// missed is how many ticks lie between that of the last run and the one that a run is for
// now. A run without a phase moves the ticks: there it is the one that would be nearest.
func (e Every) missed(last, tick time.Time) int {
	if last.IsZero() || e.IsZero() {
		return 0
	}
	between := tick.Sub(last)
	switch {
	case e.zone != nil: // its days are not all of 24 hours
		between = time.Duration(e.dayOfTick(tick)-e.dayOfTick(e.nearest(last))) * span.Day
	case e.phased: // the last one may be a tick of another phase
		between = tick.Sub(e.nearest(last))
	}
	return max(int(between.Round(e.span)/e.span)-1, 0)
}

// Missed is how many ticks have gone without a run until now, after that of the last result,
// by the source's clock. One that may still be run is not counted.
func (e Every) Missed(now time.Time, last multilock.Result) int {
	if last.Tick.IsZero() || e.disbelieves(now, &last) {
		return 0
	}
	if e.phased {
		now = e.nearest(now)
	}
	return e.missed(last.Tick, now)
}
