package lockgroup

import (
	"time"

	"github.com/multilock/go/internal/span"
	"github.com/multilock/go/multilock"
)

// tick is the one that now means, given that of the last result; zero if there is none.
//
// With a phase it is the tick that is nearest. Without one, the ticks follow the runs: a
// span after the last one, or now if that has passed. So whoever looks for a run more
// often than once per span gets one per span, and a line that fires once per span is
// never pulled to an edge by ticks that others have set: it is late once, and then they
// are where it fires.
func (e Every) tick(now, last time.Time) time.Time {
	if e.phased {
		return e.nearest(now)
	}
	if next := last.Add(e.span); !last.IsZero() && next.After(now) {
		return next
	}
	return now.UTC()
}

// due says whether a tick is to have a run of its own after this last result: not if it
// is that of the result, and never within half a span after that began. This also
// covers a clock that was set back by as much.
func (e Every) due(now time.Time, last *multilock.Result) bool {
	switch {
	case now.Sub(last.Began).Abs() < e.span/2:
		return false
	case e.disbelieves(now, last):
		return true
	case e.phased:
		return e.nearest(now).After(last.Tick)
	}
	return !now.Before(last.Tick.Add(e.span / 2))
}

// disbelieves says whether no run until now can have left this result: the source's clock
// was wrong when it was recorded, or it is for a tick of another Every.
func (e Every) disbelieves(now time.Time, last *multilock.Result) bool {
	return last.Began.After(now.Add(e.span/2)) || last.Tick.After(now.Add(e.span))
}

// nearest is the tick nearest to a moment; of two, the later one.
func (e Every) nearest(now time.Time) time.Time {
	if e.zone == nil {
		shift := e.shift()
		return now.UTC().Add(-shift).Round(e.span).Add(shift)
	}
	today := dayOf(now.In(e.zone))
	days := int64(e.span / span.Day)
	first := today - today%days
	best := e.onDay(first - days)
	for _, day := range []int64{first, first + days} {
		if tick := e.onDay(day); now.Sub(tick).Abs() <= now.Sub(best).Abs() {
			best = tick
		}
	}
	return best
}

// dayOf counts the days of the calendar from 1970-01-01.
func dayOf(local time.Time) int64 {
	year, month, day := local.Date()
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix() / int64(span.Day/time.Second)
}

// onDay is the tick of a day of the calendar.
func (e Every) onDay(day int64) time.Time {
	return firstAt(time.Unix(day*int64(span.Day/time.Second), 0).UTC().Add(e.phase), e.zone)
}

// firstAt is the first moment at which the wall clocks of a zone have come to a time,
// which is given as if they showed UTC. (time.Date chooses freely where a zone changes.)
func firstAt(wall time.Time, zone *time.Location) time.Time {
	from := wall.Add(-span.Day) // it is earlier than that in every zone
	for {
		local := from.In(zone)
		_, offset := local.Zone()
		moment := wall.Add(-time.Duration(offset) * time.Second)
		if moment.Before(from) { // the change has skipped it
			return from.UTC()
		}
		_, end := local.ZoneBounds()
		if end.IsZero() || moment.Before(end) {
			return moment.UTC()
		}
		from = end
	}
}

// better is what to write for a line that fires now, if that is far from its tick; else
// the zero value. Without a phase there is nothing to be far from.
func (e Every) better(now, tick time.Time) Every {
	if !e.phased || now.Sub(tick).Abs() <= e.span/5*2 {
		return Every{}
	}
	return e.at(now)
}

// at has its ticks where now is, as people would write it. What cannot be written goes
// without a phase: the days of longer spans are counted, and not chosen.
func (e Every) at(now time.Time) Every {
	grain := time.Second
	if e.span >= time.Hour {
		grain = time.Minute
	}
	since := now.Sub(Every{span: e.span, phased: true}.nearest(now))
	switch {
	case e.zone != nil && e.span > span.Day:
		return Every{span: e.span}
	case e.zone != nil:
		local := now.In(e.zone)
		hour, minute, second := local.Clock()
		since = time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute + time.Duration(second)*time.Second
	}
	e.phase = (since.Round(grain) + e.span) % e.span
	return e
}
