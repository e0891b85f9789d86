package command

import (
	"strconv"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/runner"
	"github.com/multilock/go/multilock/source"
)

// A lock that ends by time is over for its holder before others can have it, and
// nothing prolongs it. So its job is told how much time it has, and is ended within it.

const timeHelp = `Under a lock that ends by time (cook+...) the command also gets MULTILOCK_REMAINING,
the seconds that it has, and MULTILOCK_UNTIL, when they are over by this host's clock
(seconds since 1970). What still runs then gets TERM, and KILL after --grace, but after
a quarter of the time at most; the exit code is 124. Such a lock stays taken until
its period is over, however early the command ends.`

// checkTimed finds options that mean nothing to a lock that ends by time.
func (o *runOptions) checkTimed(src *place.Source) error {
	if !src.Timed() {
		return nil
	}
	if o.slots.Given {
		return src.Lacking("run: --slots", source.TraitPromptRelease)
	}
	for _, option := range []struct {
		name  string
		given bool
	}{
		{"--ttl", o.ttl.Given}, {"--min-hold", o.minHold.Given}, {"--on-lost ignore", o.onLost == string(runner.Ignore)},
	} {
		if option.given {
			return console.Usagef("run", "%s: a lock of this source lasts for its period, no shorter and no longer, and its job ends with it; leave the option out", option.name)
		}
	}
	return nil
}

// graceInTime is the time between TERM and KILL of the job: under a lock that ends by
// time it is a part of that.
func (r *jobRun) graceInTime() time.Duration {
	if !r.lock.Timed() {
		return r.opt.grace.Value
	}
	return min(r.opt.grace.Value, r.lock.Remaining()/4)
}

// timeVariables tell the job how much time it has.
func (r *jobRun) timeVariables() []string {
	if !r.lock.Timed() {
		return nil
	}
	left := r.lock.Remaining() - r.grace
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
