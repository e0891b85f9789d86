package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/multilock/go/cmd/multilock/job"
	"github.com/multilock/go/multilock"
)

// A lock that ends by time is over for its holder before others can have it, and
// nothing prolongs it. So its job is told how much time it has, and is ended within it.

const timeHelp = `Under a lock that ends by time (cook+...) the command also gets MULTILOCK_REMAINING,
the seconds that it has, and MULTILOCK_UNTIL, when they are over by this host's clock
(seconds since 1970). What still runs then gets TERM, and KILL after --grace, but after
a quarter of the time at most; the exit code is 124. Such a lock stays taken until
its period is over, however early the command ends.`

// checkTimed finds options that mean nothing to a lock that ends by time.
func (o *runOptions) checkTimed(src *source) error {
	if !src.timed() {
		return nil
	}
	if o.slots.set {
		return src.lacking("run: --slots", multilock.PromptRelease)
	}
	for _, option := range []struct {
		name  string
		given bool
	}{
		{"--ttl", o.ttl.set}, {"--min-hold", o.minHold.set}, {"--on-lost ignore", o.onLost == onLostIgnore},
	} {
		if option.given {
			return usagef("run", "%s: a lock of this source lasts for its period, no shorter and no longer, and its job ends with it; leave the option out", option.name)
		}
	}
	return nil
}

// lastingError is the refusal of a lock that nobody can break.
type lastingError struct{ err error }

func (l *lastingError) Error() string { return l.err.Error() }
func (l *lastingError) Unwrap() error { return l.err }

func (s *source) ifLasting(err error) error {
	if err != nil && s.denies(multilock.BreakByEvidence) {
		return &lastingError{err}
	}
	return err
}

// graceAtTheEnd is the time between TERM and KILL of a job whose time is over, which
// is a part of its time.
func (r *jobRun) graceAtTheEnd() time.Duration {
	if !r.lock.Timed() {
		return r.opt.grace.value
	}
	return min(r.opt.grace.value, r.lock.Remaining()/4)
}

// timeLeft is how long the job may go on before it is told to end; timed is false if
// the lock is renewed.
func (r *jobRun) timeLeft() (left time.Duration, timed bool) {
	if !r.lock.Timed() {
		return 0, false
	}
	return r.lock.Remaining() - r.grace, true
}

// timesUp tells when the job has to be told to end.
func (r *jobRun) timesUp() (over <-chan time.Time, stop func()) {
	left, timed := r.timeLeft()
	if !timed {
		return nil, func() {}
	}
	timer := time.NewTimer(left)
	return timer.C, func() { timer.Stop() }
}

// endInTime ends the job so that none of it is left when the lock is over.
func (r *jobRun) endInTime(ctx context.Context, j *job.Job) error {
	grace := r.graceNow()
	r.env.say("the time of lock %q is over in %s; ending the job", r.opt.name, short(grace))
	return j.Stop(ctx, grace)
}

// graceNow is the time between TERM and KILL of a job that is ended now, whatever
// for: no more than there is.
func (r *jobRun) graceNow() time.Duration {
	if !r.lock.Timed() {
		return r.opt.grace.value
	}
	return min(r.opt.grace.value, r.lock.Remaining())
}

func (r *jobRun) overError(what string) error {
	return fmt.Errorf("lock %q: %w: %s", r.opt.name, multilock.ErrOver, what)
}

// timeVariables tell the job how much time it has.
func (r *jobRun) timeVariables() []string {
	left, timed := r.timeLeft()
	if !timed {
		return nil
	}
	return []string{
		"MULTILOCK_UNTIL=" + strconv.FormatInt(time.Now().Add(left).Unix(), 10),
		"MULTILOCK_REMAINING=" + strconv.FormatInt(int64(left/time.Second), 10),
	}
}

// takenUntil is about when anybody else can have the lock, by this host's clock. The
// record's TTL is the lock's whole period.
func (r *jobRun) takenUntil() string {
	return r.since.Add(r.lock.Record().TTL).Format(time.TimeOnly)
}

// staysTaken is what there is to add when the holder is done with the lock.
func (r *jobRun) staysTaken() string {
	if !r.lock.Timed() {
		return ""
	}
	return "; it stays taken until about " + r.takenUntil()
}
