package lockgroup

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// CatchUp selects what happens with ticks for which no host ran the job. The zero value skips them.
// ParseCatchUp returns others.
type CatchUp struct {
	on     bool
	missed int // how many ticks before the last one to run, too
}

// MaxCatchUp is the most ticks that a job can catch up with.
const MaxCatchUp = 1000

// A tick may run early by at most this time and this share of its span, because a host's clock may
// be ahead of the source's.
const (
	maxEarly   = 30 * time.Second
	earlyShare = 10
)

// ParseCatchUp parses the handling of missed ticks:
//
//	none      skip them
//	latest    run the last tick that has come, however late
//	all:N     run the last N ticks before it, too, the oldest first
//
// The error is a *source.InvalidError.
func ParseCatchUp(text string) (CatchUp, error) {
	number, all := strings.CutPrefix(text, "all:")
	switch n, err := strconv.Atoi(number); {
	case text == "none":
		return CatchUp{}, nil
	case text == "latest":
		return CatchUp{on: true}, nil
	case all && err == nil && n >= 1 && n <= MaxCatchUp:
		return CatchUp{on: true, missed: n}, nil
	case all:
		return CatchUp{}, invalidCatchUp(text, fmt.Sprintf("choose how many from 1 to %d, such as all:24", MaxCatchUp))
	}
	return CatchUp{}, invalidCatchUp(text, "choose none, latest or all:N")
}

func invalidCatchUp(text, why string) error {
	return &source.InvalidError{What: "catch up", Got: text, Why: why}
}

// String returns the form that ParseCatchUp reads.
func (c CatchUp) String() string {
	switch {
	case !c.on:
		return "none"
	case c.missed == 0:
		return "latest"
	}
	return "all:" + strconv.Itoa(c.missed)
}

// catchesUp reports whether missed ticks make a difference. With CatchUp "latest" and no phase they
// do not: a late run counts for the present tick.
func (p Plan) catchesUp() bool {
	return !p.Every.IsZero() && p.CatchUp.on && (p.Every.phased || p.CatchUp.missed > 0)
}

// afterwards decides what follows an attempt under the same lock: a retry, or after a success the
// next missed tick. It stops at a tick whose attempts are used up, because the cause may be this host.
func (p Plan) afterwards(now time.Time, r multilock.Result) Decision {
	if d := p.Again(r); d.Step != StepDone || !p.catchesUp() {
		return d
	}
	return p.Next(now, &r)
}

// come returns the last tick with a phase that may run by now.
func (e Every) come(now time.Time) time.Time {
	return e.latest(now.Add(min(maxEarly, e.span/earlyShare)))
}

// catchUp decides for a job that catches up. It uses only the last result, so any host can continue
// after a crash.
func (p Plan) catchUp(now time.Time, last *multilock.Result) Decision {
	owed := p.Every.owedAt
	if !p.Every.phased {
		owed = p.Every.owedAfter
	}
	tick, missed, due := owed(now, last, p.CatchUp.missed, !p.settled(*last))
	if !due {
		return p.Again(*last)
	}
	return Decision{Attempt: 1, Tick: tick, Began: now.UTC(), Missed: missed}
}

// settled reports whether the tick of a result needs no more attempts.
func (p Plan) settled(r multilock.Result) bool { return p.Again(r).Step != StepRun }

// owedAt returns the next tick to run, for ticks with a phase: the first after the last result's,
// and at most n before the last one that has come. Missed counts the skipped ticks. No tick is due
// while the tick of the last result is to be retried.
func (e Every) owedAt(now time.Time, last *multilock.Result, n int, open bool) (tick time.Time, missed int, due bool) {
	come := e.come(now)
	oldest := e.step(come, -n)
	if !come.After(last.Tick) || open && !last.Tick.Before(oldest) {
		return time.Time{}, 0, false
	}
	tick = e.step(last.Tick, 1)
	if tick.Before(oldest) {
		tick = oldest
	}
	return tick, e.missed(last.Tick, tick), true
}

// owedAfter is owedAt for ticks that follow the runs. Missed ticks lie at multiples of the span
// after the last one; the present tick is a span after the last, or now.
func (e Every) owedAfter(now time.Time, last *multilock.Result, n int, open bool) (tick time.Time, missed int, due bool) {
	all := e.missed(last.Tick, now)
	late, from := last.Began.Sub(last.Tick) >= e.span/2, last.Tick.Add(e.span/2)
	if late { // the last run caught up: wait for the next run's time, not half a span before it
		from = last.Tick.Add(e.span / 5 * 3)
	}
	switch {
	case open && all < n:
		return time.Time{}, 0, false
	case all > 0:
		missed = max(all-n, 0)
		return e.step(last.Tick, missed+1), missed, true
	case now.Before(from), !late && now.Sub(last.Began).Abs() < e.span/2:
		return time.Time{}, 0, false
	}
	return e.tick(now, last.Tick), 0, true
}
