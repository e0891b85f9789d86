package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/options"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/job"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// request is what a run is to do. It does not change once it was read.
type request struct {
	common                  // where the lock is, and how to report
	locking locking         // how to acquire it
	plan    *lockgroup.Plan // nil if no result is recorded
	job     jobRequest
	capture capturing
	hooks   hooks
	ping    pinging
}

// locking is how a run acquires its lock.
type locking struct {
	holding
	slots     console.Number
	wait      console.WaitLimit
	jitter    console.Duration // at most; before all else
	heldCode  console.Number
	failAfter console.Number
}

// jobRequest is a command and its limits.
type jobRequest struct {
	args                       []string
	shown                      string // to others, in place of args
	minHold, maxRuntime, grace console.Duration
	onLost                     string
}

// runOptions reads a request from the command line.
type runOptions struct {
	request
	disclosure
	once       bool
	every      lockgroup.Every
	catchUp    lockgroup.CatchUp
	retries    console.Number
	retryOn    exitCodes
	retryDelay console.Duration
}

// Run runs a command under a lock.
func Run(e *Env) *cli.Command {
	o := &runOptions{}
	return &cli.Command{
		Name:      "run",
		Usage:     "take the lock, run a command, release the lock",
		ArgsUsage: "-n NAME [options] [--] COMMAND [ARGUMENT...]",
		Description: `Takes the lock, runs COMMAND, releases the lock. Ends with COMMAND's exit code,
or with 121 if another process holds the lock.

   0 2 * * *  multilock -d /shared run -qE0 -n nightly --every 1d -- nightly.sh

This line stands in the crontab of every host: -q -E 0 keeps quiet where another host runs
the job, and --every 1d keeps a host whose clock is late from running it again.

The command runs in a process group of its own. It gets MULTILOCK_NAME, MULTILOCK_GROUP, MULTILOCK_TOKEN and, where the
source has them, MULTILOCK_FENCE in its environment, and never MULTILOCK_PASSWORD.
If this process is killed, the command dies with it (Linux; not in its first 100 ms),
and as long as any of its processes lives the lock counts as held on this host. A
daemon that forks twice and overwrites its environment is not seen then: keep it in
the foreground. If this process is
stopped for so long that others may have the lock, the command is ended before
that, also one that was suspended with Ctrl-Z. The lock is released
when COMMAND itself ends: what it left in the background is not waited for.

Signals are passed on to it. TERM, INT, HUP and QUIT go to all of its processes, also
to those that left its process group (Linux); when COMMAND has ended then, what is
left of it gets TERM, and KILL after --grace, before the lock is released.

   multilock -d /shared run -n nightly --max-runtime 2h -- nightly.sh
   multilock -d /shared run -n report --wait forever -- make report

` + onceHelp + `

` + timeHelp + `

` + fairHelp + `

` + probeHelp + `

` + sharedHelp + `

` + capturingHelp + `

` + hooksHelp + `

` + pingHelp + `

` + console.ExitTable,
		Flags: e.Flags("run", options.Values{
			"wait": &o.locking.wait, "conflict-exit-code": &o.locking.heldCode, "shared": &o.locking.Shared, "fair": &o.locking.Fair, "slots": &o.locking.slots,
			"once": &o.once, "every": timing(&o.every, lockgroup.ParseEvery), "catch-up": timing(&o.catchUp, lockgroup.ParseCatchUp), "retries": &o.retries, "retry-on": &o.retryOn, "retry-delay": &o.retryDelay, "jitter": &o.locking.jitter,
			"max-runtime": &o.job.maxRuntime, "grace": &o.job.grace, "min-hold": &o.job.minHold, "fail-after": &o.locking.failAfter,
			"ttl": &o.locking.TTL, "max-age": &o.locking.MaxAge, "poll": &o.locking.Poll, "probe": &o.locking.Probe, "if-lost": &o.job.onLost,
			"json-fd": &e.jsonFD, "quiet-success": &o.capture.quietSuccess, "log": &o.capture.log, "log-keep": &o.capture.logKeep, "label": &o.label, "redact": &o.redact,
			"on-failure": &o.hooks.failure, "on-success": &o.hooks.success, "on-loss": &o.hooks.loss, "on-overrun": &o.hooks.onOverrun,
			"overrun": &o.hooks.overrunAfter, "hook-timeout": &o.hooks.timeout, "ping": &o.ping.url, "ping-timeout": &o.ping.timeout,
		}),
		Action: action(e, &o.common, o.read, func(ctx context.Context, src *place.Source) error { return o.job.hinted(o.run(ctx, e, src)) }),
	}
}

const onceHelp = `With --once the result is recorded when the job ends, and a job whose success is
recorded is not run again: the exit code is 0, and a line says who ran it. One
that failed is tried again as often as --retries says; after that its exit code is
what every further run ends with, until "multilock clean --results NAME". A runner
that crashes before the result is recorded, or is told to end by a signal, has
not run the job as far as anybody can know: it is run again. A job that dies of
TERM, INT, HUP or QUIT, or exits with such a signal's code (128+n), is recorded a
second later, for who ends both may end the job first.

` + tickHelp

const tickHelp = `With --every the job runs once per tick, on whichever host comes first, by the clock
of the file server. Let the line fire once per tick on every host; hosts may differ
by up to two fifths of the time between two ticks:

   --every 1h                         an hour after the last run: fits each line
   --every 1h@30m                     half past each hour
   --every 1d@07:30                   half past seven in UTC
   --every '1d@07:30[Europe/Berlin]'  by the wall clocks there, in all seasons

A run is for the tick that is nearest; the command finds it in MULTILOCK_TICK. Two
runs never start within half the time between two ticks, but for --retries. A line
that fires more often, so that a job whose host died is not left until the next
tick, needs the form without "@", or --catch-up.

Where no host ran the job at a tick, that tick is missed; "overdue", "history" and
"report" tell of it. --catch-up makes up for it, once over all hosts:

   --catch-up none     the next tick is run, and nothing else (the default)
   --catch-up latest   the last tick that has come is run, however late; a host
                       that comes back at nine runs the job of two o'clock then
   --catch-up all:24   and the 24 last that were missed before it, oldest first,
                       each with its own MULTILOCK_TICK and its own --retries

With "@" and --catch-up a tick is never run more than half a minute before it comes
(a tenth of the time between two, if that is less), so the line may fire as often as
you like. Without "@" only all:N makes a difference. When a tick fails for good, those
after it are left to the next time the line fires.`

const timeHelp = `Under a lock that ends by time (cook+...) the command also gets MULTILOCK_REMAINING,
the seconds that it has, and MULTILOCK_UNTIL, when they are over by this host's clock
(seconds since 1970). What still runs then gets TERM, and KILL after --grace, but after
a quarter of the time at most; the exit code is 124. Such a lock stays taken until
its period is over, however early the command ends.`

// read makes the request, and rejects contradictions that are no relations between options.
func (o *runOptions) read(c *cli.Context) error {
	const name = "run"
	o.job.args = c.Args().Slice()
	o.job.shown = o.words(o.job.args)
	o.locking.useTTL(&o.Place)
	if o.once || !o.every.IsZero() {
		o.plan = &lockgroup.Plan{Retries: o.retries.Value, RetryOn: o.retryOn, RetryDelay: o.retryDelay.Value, Every: o.every, CatchUp: o.catchUp}
	}
	limit, grace, slots, log := o.job.maxRuntime, o.job.grace, o.locking.slots, o.capture.log
	switch {
	case len(o.job.args) == 0:
		return console.Usagef(name, "no command; write: multilock run [options] -- COMMAND [ARGUMENT...]")
	case limit.Given && o.job.minHold.Value > limit.Value+grace.Value:
		return console.Usagef(name, "--min-hold %s is longer than --max-runtime %s with its grace of %s; the lock would be kept long after the job was ended",
			o.job.minHold.Value, limit.Value, grace.Value)
	case slots.Given && multilock.Shareable(o.Name):
		return console.Usagef(name, "--slots: the name %q is that of a lock which readers share, and they would not be seen; choose another", o.Name)
	case log != "" && (slots.Given || o.locking.Shared) && !isDirectory(log):
		return console.Usagef(name, "--log %s: with --slots or --shared several runs write at the same time; name a directory, with a slash at its end", log)
	}
	return errors.Join(o.locking.checkName(name, o.Name), o.ping.open())
}

// hinted adds to a command that was not found what may have been meant: the lock's name, where
// other commands take it, or a line for a shell.
func (j jobRequest) hinted(err error) error {
	if !errors.As(err, new(*job.NotFoundError)) {
		return err
	}
	switch {
	case len(j.args) > 1 && j.args[1] == "--":
		return fmt.Errorf("%w; if that is the lock's name, write: run -n %s %s", err, j.args[0], console.CommandLine(j.args[1:]))
	case strings.ContainsAny(j.args[0], " \t\n;&|<>()$`*?\"'"):
		return fmt.Errorf("%w; if that is a line for a shell, write: -- sh -c %s", err, console.CommandLine(j.args))
	}
	return err
}

// timing reads a value of package lockgroup into to.
func timing[T any](to *T, parse func(string) (T, error)) options.Reader {
	return func(text string) error {
		var err error
		var invalid *source.InvalidError
		if *to, err = parse(text); errors.As(err, &invalid) {
			return errors.New(invalid.Why)
		}
		return err
	}
}
