package lockgroup

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/multilock/go/internal/span"
	"github.com/multilock/go/multilock/source"
)

// Every is how often a job runs: once per tick across all hosts, by the source's clock, with one tick in
// each span. The zero value means a single run. ParseEvery and EverySpan return others.
//
// No call waits for a tick: it runs the job at once, or finds that the job has run. With a phase
// ("1d@07:30") a run is for the nearest tick, past or future, so call within two fifths of a span of
// the tick. Without one, a run more than half a span after the last one is for the next tick. Two runs
// never start within half a span, except for retries.
type Every struct {
	span   time.Duration
	phased bool          // ticks are at phase; else they follow the runs
	phase  time.Duration // since 1970 UTC; with a zone, wall clock time since midnight
	zone   *time.Location
}

const (
	minSpan = time.Second
	maxSpan = 100 * 365 * span.Day
)

// EverySpan returns an Every without a phase. A span shorter than a second or longer than a hundred
// years is rejected where the Every is used; 0 returns the zero value.
func EverySpan(d time.Duration) Every { return Every{span: d} }

// ParseEvery parses "SPAN" or "SPAN@PHASE". A span is 90s, 5m, 2h30m or 1d. The ticks are
//
//	1h                        every hour from the last run
//	1h@30m                    half an hour after each full hour: a duration since 1970 UTC
//	1d@07:30                  at this time of day in UTC
//	1d@07:30[Europe/Berlin]   at this wall clock time in a zone; if a change skips it, at the
//	                          end of the gap; if it occurs twice, the first time
//
// A time of day needs a span of whole days, counted from 1970-01-01. The error is a
// *source.InvalidError.
func ParseEvery(text string) (Every, error) {
	e, err := parseEvery(text)
	if err != nil {
		return Every{}, &source.InvalidError{What: "every", Got: text, Why: err.Error(), Err: err}
	}
	return e, nil
}

func parseEvery(text string) (e Every, err error) {
	length, phase, phased := strings.Cut(text, "@")
	if e.span, err = span.Parse(length); err != nil {
		return e, err
	}
	if err := e.checkSpan(); err != nil || !phased {
		return e, err
	}
	return e.parsePhase(phase)
}

func (e Every) parsePhase(text string) (_ Every, err error) {
	e.phased = true
	clock, zone, zoned := strings.Cut(text, "[")
	switch {
	case strings.Contains(clock, ":"):
		e.phase, err = e.timeOfDay(clock)
	case zoned:
		err = fmt.Errorf("a time zone needs a time of day, such as @07:30[%s", zone)
	default:
		e.phase, err = e.offset(clock)
	}
	if err == nil && zoned {
		e.zone, err = parseZone(zone)
	}
	return e, err
}

// timeOfDay parses 07:30 or 07:30:15 into the time since midnight.
func (e Every) timeOfDay(text string) (time.Duration, error) {
	if e.span%span.Day != 0 {
		return 0, fmt.Errorf("the time of day %s needs a span of whole days, such as 1d; for a shorter one write how long after its start the tick is, such as 1h@30m", text)
	}
	for _, layout := range []string{"15:04", "15:04:05"} {
		if moment, err := time.Parse(layout, text); err == nil {
			return moment.Sub(moment.Truncate(span.Day)), nil
		}
	}
	return 0, fmt.Errorf("%q is no time of day; write 07:30", text)
}

// offset parses a phase that is a duration. It rejects a number without a unit, which span.Parse
// would read as seconds.
func (e Every) offset(text string) (time.Duration, error) {
	phase, err := span.Parse(text)
	if _, isNumber := strconv.ParseFloat(text, 64); isNumber == nil {
		return 0, fmt.Errorf("the phase %s has no unit; write %sm or %ss", text, text, text)
	}
	if err == nil && phase >= e.span {
		err = fmt.Errorf("the phase %s is not shorter than the span %s", text, span.Format(e.span))
	}
	return phase, err
}

// parseZone parses what follows the opening bracket. "Local" is rejected: it differs by host.
func parseZone(text string) (*time.Location, error) {
	name, closed := strings.CutSuffix(text, "]")
	if !closed || name == "" || name == "Local" {
		return nil, fmt.Errorf("%q does not end with the name of a time zone; write 07:30[Europe/Berlin]", "["+text)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("this host does not know the time zone %q: correct the name, or install the package tzdata here: %w", name, err)
	}
	return zone, nil
}

func (e Every) checkSpan() error {
	switch {
	case e.span < minSpan:
		return fmt.Errorf("the span %s is shorter than %s", span.Format(e.span), minSpan)
	case e.span > maxSpan:
		return fmt.Errorf("the span %s is longer than a hundred years", span.Format(e.span))
	}
	return nil
}

// check validates values that were not parsed.
func (e Every) check() error {
	if e.IsZero() {
		return nil
	}
	if err := e.checkSpan(); err != nil {
		return &source.InvalidError{What: "every", Got: e.String(), Why: err.Error()}
	}
	return nil
}

// IsZero reports whether the job runs only once, without ticks.
func (e Every) IsZero() bool { return e == Every{} }

// String returns the form that ParseEvery reads; "" for the zero value.
func (e Every) String() string {
	switch {
	case e.IsZero():
		return ""
	case !e.phased:
		return span.Format(e.span)
	case e.zone != nil:
		return span.Format(e.span) + "@" + e.clock() + "[" + e.zone.String() + "]"
	case e.span%span.Day == 0 && e.phase < span.Day:
		return span.Format(e.span) + "@" + e.clock()
	}
	return span.Format(e.span) + "@" + span.Format(e.phase)
}

// clock formats the phase as a time of day.
func (e Every) clock() string {
	layout := "15:04"
	if e.phase%time.Minute != 0 {
		layout = "15:04:05.999999999"
	}
	return time.Time{}.Add(e.phase).Format(layout)
}
