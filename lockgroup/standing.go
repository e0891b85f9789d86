package lockgroup

import (
	"cmp"
	"fmt"
	"time"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// Standing is how it stands with a job that is to run again and again, or once and for all,
// as far as its last result tells.
type Standing struct {
	State StandingState
	// Last is that result, nil if there is none.
	Last *multilock.Result
	// Every is how often the job is to run; zero if that is once and for all, or not known.
	Every Every
	// Succeeded is when it last ended well, by the source's clock; for a job without ticks by
	// that of its host. Zero if it never has, or nobody knows.
	Succeeded time.Time
	// Due is when it should end well next, or should have; zero for a job without ticks.
	Due time.Time
	// Late is how long that has passed, zero if it has not, and Within for how long that is
	// no harm. Overran says that by now the run after that is late, too.
	Late, Within time.Duration
	Overran      bool
	// Missed is how many ticks have gone without a run since the last one.
	Missed int
	// Why says in words what is wrong with it, "" if nothing is.
	Why string
}

// StandingState is how it stands with a job.
type StandingState int

const (
	// StandingWell means that the job has ended well, and is not due.
	StandingWell StandingState = iota
	// StandingRetry means that it has failed, and is to be tried again.
	StandingRetry
	// StandingFailed means that it has failed as often as it may, and has not been due since.
	StandingFailed
	// StandingLate means that it has been due for longer than it is given, and no run of
	// it has ended since.
	StandingLate
	// StandingUnknown means that nobody can tell.
	StandingUnknown
)

// Expectation is what is expected of a job.
type Expectation struct {
	// Within is how long after its tick a job may end; zero stands for half its span, after
	// which the tick is missed for good.
	Within time.Duration
	// Every, if not zero, is in which time the job is to end well again, whatever ticks it has.
	Every time.Duration
}

// JudgeEnd does the same for a job that has no result: by when its last good end was, as the
// history tells; zero if it tells of none.
func (x Expectation) JudgeEnd(now, well time.Time) Standing {
	s := Standing{Succeeded: well}
	if well.IsZero() {
		s.State, s.Why, s.Every = StandingLate, "it has not ended well in all the time of which the history was asked", EverySpan(x.Every)
		return s
	}
	return x.judgeFrom(s, now)
}

// Judge says how it stands with a job at a time of the source's clock, given the last
// result of its name; nil if there is none. Whether the job runs just now it does not know.
func (x Expectation) Judge(now time.Time, last *multilock.Result) Standing {
	s := Standing{Last: last}
	switch {
	case last == nil:
		return s.unknown("there is no result of it: it runs without --every and --once, never came to its end, or is called otherwise")
	case last.Foreign != "":
		return s.unknown("its result cannot be understood: " + last.Foreign)
	}
	s.Succeeded = succeeded(*last)
	if x.Every > 0 {
		return x.judgeFrom(s, now)
	}
	return x.judgeTicks(s, now)
}

// JudgeFirst does the same for a job that has no result because its first run has not ended, as
// far as the record of its lock tells: it says how often the job is to run, and the lock was
// taken so long ago.
func (x Expectation) JudgeFirst(now time.Time, every string, age time.Duration) Standing {
	s, within := Standing{}, x.Within
	began := now.Add(-age)
	switch parsed, err := ParseEvery(every); {
	case age < 0 || x.Every > 0:
		return x.Judge(now, nil)
	case every == source.EveryOnce && within > 0:
		s.Due = began
	case err != nil:
		return x.Judge(now, nil)
	default:
		s.Every, s.Due = parsed, parsed.tick(began, time.Time{})
		within = cmp.Or(within, parsed.span/2)
	}
	if s = s.lateAfter(now, within); s.State == StandingLate {
		s.Why = "its first run should have ended"
	}
	return s
}

// succeeded is when a job last ended well. Results of older versions tell that of their own
// success alone.
func succeeded(last multilock.Result) time.Time {
	if last.Succeeded.IsZero() && last.OK() {
		return last.Start.Add(last.Duration)
	}
	return last.Succeeded
}

// judgeFrom judges a job by when it last ended well, and nothing else: that a run failed in
// between does no harm.
func (x Expectation) judgeFrom(s Standing, now time.Time) Standing {
	s.Every = EverySpan(x.Every)
	s.Due = s.Succeeded.Add(x.Every)
	switch {
	case s.Succeeded.After(now.Add(x.Every)):
		return s.unknown("it has ended well in the future: a clock was wrong then, or is now")
	case s.Succeeded.IsZero():
		s.State, s.Due, s.Why = StandingLate, time.Time{}, "it has never ended well, as far as its result tells"
		return s
	}
	return s.lateAfter(now, x.Within)
}

// judgeTicks judges a job by the ticks that it has.
func (x Expectation) judgeTicks(s Standing, now time.Time) Standing {
	if s.Last.Tick.IsZero() {
		return s.failedOr(s)
	}
	every, err := ParseEvery(s.Last.Every)
	switch {
	case err != nil || every.IsZero():
		return s.failedOr(s.unknown(fmt.Sprintf("how often it is to run is not known here (%q)", s.Last.Every)))
	case every.disbelieves(now, s.Last):
		return s.unknown("its result is for a tick in the future: the server's clock was wrong then, or is now")
	}
	s.Every, s.Missed, s.Due = every, every.Missed(now, *s.Last), every.Next(s.Last.Tick)
	within := x.Within
	if within == 0 {
		within = every.span / 2
	}
	return s.failedOr(s.lateAfter(now, within))
}

// lateAfter says that the job is late, if it is.
func (s Standing) lateAfter(now time.Time, within time.Duration) Standing {
	s.Within = within
	if s.Late = max(now.Sub(s.Due), 0); s.Late > within {
		s.State, s.Why = StandingLate, "it should have run"
		s.Overran = now.Sub(s.Every.Next(s.Due)) > within
	}
	return s
}

// failedOr is how it stands with a job whose last attempt may have failed: that is why it is
// late, or what is known of it at all.
func (s Standing) failedOr(otherwise Standing) Standing {
	switch {
	case s.Last.OK():
		return otherwise
	case otherwise.State == StandingLate && s.Last.Final:
		otherwise.Why = "its last run failed, and it should have run again"
		return otherwise
	case otherwise.State == StandingLate:
		otherwise.Why = "it failed, and was not tried again in time"
		return otherwise
	case s.Last.Final:
		otherwise.State, otherwise.Why = StandingFailed, "it failed"
	default:
		otherwise.State, otherwise.Why = StandingRetry, "it failed, and is to be tried again"
	}
	return otherwise
}

func (s Standing) unknown(why string) Standing {
	s.State, s.Why = StandingUnknown, why
	return s
}
