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

// request describes a run. It does not change after it was read.
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
	jitter    console.Duration // maximum random delay before the run
	heldCode  console.Number
	failAfter console.Number
}

// jobRequest is a command and its limits.
type jobRequest struct {
	args                       []string
	shown                      string // shown to others in place of args
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
		Usage:     "acquire the lock, run a command, release the lock",
		ArgsUsage: "-n NAME [options] [--] COMMAND [ARGUMENT...]",
		Description: `Acquires the lock, runs COMMAND, releases the lock. Exits with COMMAND's exit code,
or with 121 if another process holds the lock.

   0 2 * * *  multilock -d /shared run -qE0 -n nightly --every 1d -- nightly.sh

This line is in the crontab of every host: -q -E 0 prints nothing if another host runs
the job, and --every 1d keeps a host whose clock is behind from running it again.

   multilock -d /shared run -n nightly --max-runtime 2h -- nightly.sh
   multilock -d /shared run -n report --wait forever -- make report`,
		Flags: e.Flags("run", options.Values{
			"wait": &o.locking.wait, "conflict-exit-code": &o.locking.heldCode, "shared": &o.locking.Shared, "fair": &o.locking.Fair, "slots": &o.locking.slots,
			"once": &o.once, "every": timing(&o.every, lockgroup.ParseEvery), "catch-up": timing(&o.catchUp, lockgroup.ParseCatchUp), "retries": &o.retries, "retry-on": &o.retryOn, "retry-delay": &o.retryDelay, "jitter": &o.locking.jitter,
			"max-runtime": &o.job.maxRuntime, "grace": &o.job.grace, "min-hold": &o.job.minHold, "fail-after": &o.locking.failAfter,
			"ttl": &o.locking.TTL, "max-age": &o.locking.MaxAge, "poll": &o.locking.Poll, "probe": &o.locking.Probe, "if-lost": &o.job.onLost,
			"json-fd": &e.jsonFD, "quiet-success": &o.capture.quietSuccess, "log": &o.capture.log, "log-keep": &o.capture.logKeep, "capture": &o.capture.group.asked, "capture-keep": &o.capture.group.keep, "capture-size": &o.capture.group.size, "label": &o.label, "redact": &o.redact,
			"on-failure": &o.hooks.failure, "on-success": &o.hooks.success, "on-loss": &o.hooks.loss, "on-overrun": &o.hooks.onOverrun,
			"overrun": &o.hooks.overrunAfter, "hook-timeout": &o.hooks.timeout, "ping": &o.ping.url, "ping-timeout": &o.ping.timeout,
		}),
		Action: action(e, &o.common, func(c *cli.Context) error { return errors.Join(o.read(c), o.capture.group.read(&o.Place, e.Env)) }, func(ctx context.Context, src *place.Source) error { return o.job.hinted(o.run(ctx, e, src)) }),
	}
}

// read makes the request, and checks what the relations between options do not cover.
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
		return console.Usagef(name, "--min-hold %s is longer than --max-runtime %s with its grace of %s; the lock would be kept long after the job was terminated",
			o.job.minHold.Value, limit.Value, grace.Value)
	case slots.Given && multilock.Shareable(o.Name):
		return console.Usagef(name, "--slots: the name %q is that of a lock which readers share, and they would not be seen; choose another", o.Name)
	case log != "" && (slots.Given || o.locking.Shared) && !isDirectory(log):
		return console.Usagef(name, "--log %s: with --slots or --shared several runs write at the same time; name a directory, with a trailing slash", log)
	}
	return errors.Join(o.locking.checkName(name, o.Name), o.ping.open())
}

// hinted adds a suggestion to the error for a command that was not found: it may be the lock's name, as other
// commands take it, or a line for a shell.
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

// timing returns a reader that parses a value of package lockgroup into to.
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
