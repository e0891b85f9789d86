package command

import (
	"errors"
	"fmt"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock/source"
)

const tickHelp = `With --every the job runs once per tick, on whichever host comes first, by the clock
of the file server. Let the line fire once per tick on every host; hosts may differ
by up to two fifths of the time between two ticks:

   --every 1h                          an hour after the last run: fits every line
   --every 1h@30m                      half past each hour
   --every 1d@07:30                    half past seven in UTC
   --every '1d@07:30[Europe/Berlin]'   by the wall clocks there, in summer and winter

A run is for the tick that is nearest; the command finds it in MULTILOCK_TICK. Two
runs never start within half the time between two ticks, but for --retries. A line
that fires more often, so that a job whose host died is not left until the next
tick, needs the form without "@".`

// everyTick is the value of --every.
type everyTick struct {
	value lockgroup.Every
	set   bool
}

func (t *everyTick) Set(text string) error {
	value, err := lockgroup.ParseEvery(text)
	var invalid *source.InvalidError
	if errors.As(err, &invalid) {
		return errors.New(invalid.Why)
	}
	t.value, t.set = value, true
	return err
}

func (t *everyTick) String() string {
	if t == nil {
		return ""
	}
	return t.value.String()
}

// forTick says which tick a run was for, if it was for one.
func forTick(tick time.Time) string {
	if tick.IsZero() {
		return ""
	}
	return " for its tick of " + utc(tick)
}

// utc writes a time of the source's clock.
func utc(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// warn tells what is wrong with the last result, or with the line, also if nothing else
// is to be told: what is not mended here goes wrong some day.
func (r *jobRun) warn() {
	if a := r.attempt; a.Disbelieved {
		r.warnings = append(r.warnings, fmt.Sprintf("the last result of job %q is for the tick of %s, later than any that --every %s can mean at %s: "+
			"it is not believed, and this run's replaces it; the server's clock was wrong then or is now, or --every was changed",
			a.Last.Name, utc(a.Last.Tick), r.plan.Every, utc(a.Now)))
	}
	if !r.attempt.Better.IsZero() {
		r.warnings = append(r.warnings, r.nearTheEdge())
	}
	for _, text := range r.warnings {
		r.env.Say("warning: %s", text)
	}
}

func (r *jobRun) nearTheEdge() string {
	tick, side := r.attempt.Tick, "after"
	if tick.After(r.attempt.Now) {
		side = "before"
	}
	return fmt.Sprintf("job %q runs %s %s its tick of %s, and so near to the middle between two ticks that one will go without a run when the line fires a little earlier or later: "+
		"if it fires once per tick, at this time, write --every %s; if more often, --every without an @",
		r.opt.Name, console.Short(r.attempt.Now.Sub(tick).Abs()), side, utc(tick), console.Quote(r.attempt.Better.String()))
}
