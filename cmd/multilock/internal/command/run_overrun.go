package command

import (
	"context"
	"fmt"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
)

// overrunWatch waits for a job to take too long.
type overrunWatch struct {
	timer *time.Timer
	done  chan struct{} // closed when what is done about it is done
}

// watchOverrun begins to wait; nil without a limit. What happens then is beside the
// job, and knows what is known of the run now: the run goes on.
func (r *jobRun) watchOverrun() *overrunWatch {
	limit, words, limited := r.overrunLimit()
	if !limited {
		return nil
	}
	began, stop, vars := time.Now(), r.signals.Until(context.Background()).Done(), r.hookVariables()
	w := &overrunWatch{done: make(chan struct{})}
	w.timer = time.AfterFunc(limit, func() {
		defer close(w.done)
		text := fmt.Sprintf("job %q takes too long: %s", r.opt.Name, words)
		r.env.Say("warning: %s", text)
		vars := append(vars, "MULTILOCK_DURATION="+seconds(time.Since(began)), "MULTILOCK_WHY="+text)
		r.opt.hookFor(r.env, eventOverrun, vars, r.printed.last()).run(stop)
	})
	return w
}

// overrunLimit is how long a job may run before it is said that it takes too long.
func (r *jobRun) overrunLimit() (limit time.Duration, words string, limited bool) {
	switch {
	case r.opt.overrunAfter.Given:
		limit = r.opt.overrunAfter.Value
		return limit, "it has run for " + console.Short(limit) + ", the limit of --overrun", true
	case r.opt.onOverrun == "" || r.attempt.Tick.IsZero():
		return 0, "", false
	}
	next := r.plan.Every.Next(r.attempt.Tick)
	for !next.After(r.attempt.Now) { // a tick that was missed is run late
		next = r.plan.Every.Next(next)
	}
	return next.Sub(r.attempt.Now), "its next tick, that of " + utc(next) + ", begins", true
}

// stop is for when the job is over.
func (w *overrunWatch) stop() {
	if w != nil && w.timer.Stop() {
		close(w.done)
	}
}

// end waits, after stop, for what was begun.
func (w *overrunWatch) end() {
	if w != nil {
		<-w.done
	}
}
