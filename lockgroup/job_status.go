package lockgroup

import (
	"cmp"
	"fmt"
	"time"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// JobStatus summarises a job from its last result. The job runs once per tick, or only once.
type JobStatus struct {
	State JobState
	// Last is the last result, nil without one.
	Last *multilock.Result
	// Every is how often the job is to run; zero for a job that runs only once, and if unknown.
	Every Every
	// Succeeded is when the job last succeeded, by the source's clock, or by its host's for a job
	// without ticks. It is zero if the job never succeeded, or if unknown.
	Succeeded time.Time
	// Due is when the job should succeed next, or should have; zero for a job without ticks.
	Due time.Time
	// Late is the time since Due, zero before. A job is late when Late exceeds Within. Overran is
	// true if the run after Due is late, too.
	Late, Within time.Duration
	Overran      bool
	// Missed counts the ticks without a run since the last run.
	Missed int
	// Why is the reason if State is not JobWell, else "".
	Why string
}

// JobState is the state of a JobStatus.
type JobState int

const (
	// JobWell means that the job has succeeded, and is not late.
	JobWell JobState = iota
	// JobRetry means that the job has failed, and is to be tried again.
	JobRetry
	// JobFailed means that the last run has failed with no attempts left, and the job has not been due since.
	JobFailed
	// JobLate means that the job is late, and no run of it has succeeded since it was due.
	JobLate
	// JobUnknown means that the state is unknown.
	JobUnknown
)

// Expectation defines when a job is late.
type Expectation struct {
	// Within is how long after its tick a job may succeed; half its span if zero, because the tick is
	// missed after that.
	Within time.Duration
	// Every, if not zero, is the longest time between two successes, whatever the job's ticks.
	Every time.Duration
}

// JudgeEnd is Judge for a job without a result, given its last success in the history; zero without
// one.
func (x Expectation) JudgeEnd(now, well time.Time) JobStatus {
	s := JobStatus{Succeeded: well}
	if well.IsZero() {
		s.State, s.Why, s.Every = JobLate, "it has not succeeded in the time that the history covers", EverySpan(x.Every)
		return s
	}
	return x.judgeFrom(s, now)
}

// Judge judges a job by its last result, which may be nil, at a time of the source's clock. It ignores
// whether the job is running.
func (x Expectation) Judge(now time.Time, last *multilock.Result) JobStatus {
	s := JobStatus{Last: last}
	switch {
	case last == nil:
		return s.unknown("no result: the job never finished, runs without --every and --once, or has another name")
	case last.Foreign != "":
		return s.unknown("its result cannot be understood: " + last.Foreign)
	}
	s.Succeeded = succeeded(*last)
	if x.Every > 0 {
		return x.judgeFrom(s, now)
	}
	return x.judgeTicks(s, now)
}

// JudgeFirst is Judge for a job whose first run has not ended. Its lock has the given age, and records
// in every how often the job is to run.
func (x Expectation) JudgeFirst(now time.Time, every string, age time.Duration) JobStatus {
	s, within := JobStatus{}, x.Within
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
	if s = s.lateAfter(now, within); s.State == JobLate {
		s.Why = "its first run should have ended"
	}
	return s
}

// succeeded returns when the job last succeeded. Results of older versions lack Succeeded.
func succeeded(last multilock.Result) time.Time {
	if last.Succeeded.IsZero() && last.OK() {
		return last.Start.Add(last.Duration)
	}
	return last.Succeeded
}

// judgeFrom judges a job by its last success alone: failed runs since then do not count.
func (x Expectation) judgeFrom(s JobStatus, now time.Time) JobStatus {
	s.Every = EverySpan(x.Every)
	s.Due = s.Succeeded.Add(x.Every)
	switch {
	case s.Succeeded.After(now.Add(x.Every)):
		return s.unknown("its last success is in the future: a clock was wrong then, or is now")
	case s.Succeeded.IsZero():
		s.State, s.Due, s.Why = JobLate, time.Time{}, "it has never succeeded, according to its result"
		return s
	}
	return s.lateAfter(now, x.Within)
}

func (x Expectation) judgeTicks(s JobStatus, now time.Time) JobStatus {
	if s.Last.Tick.IsZero() {
		return s.failedOr(s)
	}
	every, err := ParseEvery(s.Last.Every)
	switch {
	case err != nil || every.IsZero():
		return s.failedOr(s.unknown(fmt.Sprintf("how often it is to run is not known here (%q)", s.Last.Every)))
	case every.inFuture(now, s.Last):
		return s.unknown("its result is for a tick in the future: the server's clock was wrong then, or is now")
	}
	s.Every, s.Missed, s.Due = every, every.Missed(now, *s.Last), every.Next(s.Last.Tick)
	within := x.Within
	if within == 0 {
		within = every.span / 2
	}
	return s.failedOr(s.lateAfter(now, within))
}

// lateAfter sets the state to late if the job has been due for longer than within.
func (s JobStatus) lateAfter(now time.Time, within time.Duration) JobStatus {
	s.Within = within
	if s.Late = max(now.Sub(s.Due), 0); s.Late > within {
		s.State, s.Why = JobLate, "it should have run"
		s.Overran = now.Sub(s.Every.Next(s.Due)) > within
	}
	return s
}

// failedOr adds a failure of the last attempt: as the reason why the job is late, or as its state.
func (s JobStatus) failedOr(otherwise JobStatus) JobStatus {
	switch {
	case s.Last.OK():
		return otherwise
	case otherwise.State == JobLate && s.Last.Final:
		otherwise.Why = "its last run failed, and it should have run again"
		return otherwise
	case otherwise.State == JobLate:
		otherwise.Why = "it failed, and was not tried again in time"
		return otherwise
	case s.Last.Final:
		otherwise.State, otherwise.Why = JobFailed, "it failed"
	default:
		otherwise.State, otherwise.Why = JobRetry, "it failed, and is to be tried again"
	}
	return otherwise
}

func (s JobStatus) unknown(why string) JobStatus {
	s.State, s.Why = JobUnknown, why
	return s
}
