package lockgroup

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// CatchUp says what becomes of ticks for which no host ran the job. The zero value leaves
// them alone. Get others from ParseCatchUp.
type CatchUp struct {
	on     bool
	missed int // how many ticks before the last one are run, too
}

// MaxCatchUp is the most ticks that a job can be told to catch up with.
const MaxCatchUp = 1000

// The longest time, and the share of a span, by which a tick is run before it has come, for
// hosts whose clocks are ahead of the source's.
const (
	maxEarly   = 30 * time.Second
	earlyShare = 10
)

// ParseCatchUp reads what is to become of missed ticks:
//
//	none      nothing: who comes when it is time for the next one runs that
//	latest    the last tick that has come is run, however late; older ones are not
//	all:N     so are the last N before it, the oldest first
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

// String writes it as ParseCatchUp reads it.
func (c CatchUp) String() string {
	switch {
	case !c.on:
		return "none"
	case c.missed == 0:
		return "latest"
	}
	return "all:" + strconv.Itoa(c.missed)
}

// catchesUp says whether ticks that were missed make a difference. The last one alone does not
// where the ticks follow the runs: there a run that is late is for now.
func (p Plan) catchesUp() bool {
	return !p.Every.IsZero() && p.CatchUp.on && (p.Every.phased || p.CatchUp.missed > 0)
}

// afterwards decides what follows an attempt under the same lock: another one; or, after a
// success, the next tick that is to be caught up with, as of the time at which it was begun. A
// tick that has failed for good is a reason to stop, for what failed may be the place.
func (p Plan) afterwards(now time.Time, r multilock.Result) Decision {
	if d := p.Again(r); d.Step != StepDone || !p.catchesUp() {
		return d
	}
	return p.Next(now, &r)
}

// come is the last tick that has come, of ticks with a phase.
func (e Every) come(now time.Time) time.Time {
	return e.latest(now.Add(min(maxEarly, e.span/earlyShare)))
}

// catchUp decides about a job that is to catch up, given the last result. The next tick is
// told by that alone: whoever comes after a crash goes on where the results end.
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

// settled says whether nobody is to try again for the tick of a result.
func (p Plan) settled(r multilock.Result) bool { return p.Again(r).Step != StepRun }

// owedAt is the next tick to be run, of ticks with a phase: the first after the last result's,
// but none that is more than n before the last one that has come. Missed is how many are
// passed over. None is due if that of the last result is to be tried again.
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

// owedAfter is the same for ticks that follow the runs. Those that were missed lie where they
// would have followed the last one; that of now is, as ever, a span after the last, or now.
func (e Every) owedAfter(now time.Time, last *multilock.Result, n int, open bool) (tick time.Time, missed int, due bool) {
	all := e.missed(last.Tick, now)
	late, from := last.Began.Sub(last.Tick) >= e.span/2, last.Tick.Add(e.span/2)
	if late { // it was caught up with: the next one is run when it may be meant, not half a span before
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
