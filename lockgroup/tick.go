package lockgroup

import (
	"time"

	"github.com/multilock/go/internal/span"
	"github.com/multilock/go/multilock"
)

// tick returns the tick for a run now, given the tick of the last result; zero without one.
//
// With a phase it is the nearest tick. Without one, ticks follow the runs: a span after the last
// tick, or now if that has passed. A cron line that fires once per span is then late at most once,
// because the ticks move to where it fires; a line that fires more often still runs once per span.
func (e Every) tick(now, last time.Time) time.Time {
	if e.phased {
		return e.nearest(now)
	}
	if next := last.Add(e.span); !last.IsZero() && next.After(now) {
		return next
	}
	return now.UTC()
}

// due reports whether a run now is for another tick than the last result. It is not within half a span
// after that run began, which also covers a clock that was set back.
func (e Every) due(now time.Time, last *multilock.Result) bool {
	switch {
	case now.Sub(last.Began).Abs() < e.span/2:
		return false
	case e.inFuture(now, last):
		return true
	case e.phased:
		return e.nearest(now).After(last.Tick)
	}
	return !now.Before(last.Tick.Add(e.span / 2))
}

// inFuture reports whether the last result lies in the future: the source's clock was wrong at the
// time, or the result is for a tick of another Every.
func (e Every) inFuture(now time.Time, last *multilock.Result) bool {
	return last.Began.After(now.Add(e.span/2)) || last.Tick.After(now.Add(e.span))
}

// nearest returns the tick nearest to now; the later one of two.
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

// dayOf counts calendar days from 1970-01-01.
func dayOf(local time.Time) int64 {
	year, month, day := local.Date()
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix() / int64(span.Day/time.Second)
}

// onDay returns the tick of a calendar day.
func (e Every) onDay(day int64) time.Time {
	return firstAt(time.Unix(day*int64(span.Day/time.Second), 0).UTC().Add(e.phase), e.zone)
}

// firstAt returns the first moment at which wall clocks in a zone have reached a time, given as
// UTC. (time.Date does not define its choice around a change.)
func firstAt(wall time.Time, zone *time.Location) time.Time {
	from := wall.Add(-span.Day) // earlier than wall in every zone
	for {
		local := from.In(zone)
		_, offset := local.Zone()
		moment := wall.Add(-time.Duration(offset) * time.Second)
		if moment.Before(from) { // the zone skips this wall clock time
			return from.UTC()
		}
		_, end := local.ZoneBounds()
		if end.IsZero() || moment.Before(end) {
			return moment.UTC()
		}
		from = end
	}
}

// better returns an Every that suits a cron line which fires now, if now is far from its tick; else zero.
func (e Every) better(now, tick time.Time) Every {
	if !e.phased || now.Sub(tick).Abs() <= e.span/5*2 {
		return Every{}
	}
	return e.at(now)
}

// at returns an Every with a tick at now, rounded as people would write it. For spans of several
// days in a zone it has no phase, because those days are counted from 1970.
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
