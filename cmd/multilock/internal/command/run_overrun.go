package command

import (
	"context"
	"fmt"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
)

// overrunWatch runs a hook when a job runs too long.
type overrunWatch struct {
	timer *time.Timer
	done  chan struct{} // closed after the hook has ended
}

// watchOverrun starts the timer; nil without a limit. The hook runs in parallel with the job, so it gets the
// facts as of now.
func (r *attempts) watchOverrun() *overrunWatch {
	limit, words, limited := r.overrunLimit()
	if !limited {
		return nil
	}
	began, stop, vars := time.Now(), r.signals.Until(context.Background()).Done(), r.hookVariables()
	w := &overrunWatch{done: make(chan struct{})}
	w.timer = time.AfterFunc(limit, func() {
		defer close(w.done)
		text := fmt.Sprintf("job %q takes too long: %s", r.Name, words)
		r.env.Say("warning: %s", text)
		vars := append(vars, "MULTILOCK_DURATION="+seconds(time.Since(began)), "MULTILOCK_WHY="+text)
		r.hook(eventOverrun, vars, r.printed.last(), stop)
	})
	return w
}

// overrunLimit returns how long a job may run before it counts as overrun.
func (f facts) overrunLimit() (limit time.Duration, words string, limited bool) {
	switch {
	case f.hooks.overrunAfter.Given:
		limit = f.hooks.overrunAfter.Value
		return limit, "it has run for " + console.Short(limit) + ", the limit of --overrun", true
	case f.hooks.onOverrun == "" || f.attempt.Tick.IsZero():
		return 0, "", false
	}
	next := f.plan.Every.Next(f.attempt.Tick)
	for !next.After(f.attempt.Now) { // a missed tick runs late
		next = f.plan.Every.Next(next)
	}
	return next.Sub(f.attempt.Now), "its next tick, that of " + utc(next) + ", begins", true
}

// stop is called after the job has ended.
func (w *overrunWatch) stop() {
	if w != nil && w.timer.Stop() {
		close(w.done)
	}
}

// end, called after stop, waits for the hook.
func (w *overrunWatch) end() {
	if w != nil {
		<-w.done
	}
}
