package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/runner"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// runOptions is what "run" was asked to do.
type runOptions struct {
	common
	holding
	recording
	slots      console.Number
	wait       console.WaitLimit
	minHold    console.Duration
	maxRuntime console.Duration
	grace      console.Duration
	onLost     string
	heldCode   console.Number
	failAfter  console.Number
	command    []string
}

// holding is how a lock is to be held; several commands have these options.
type holding struct {
	ttl, maxAge, poll console.Duration
}

func (h *holding) flags() []cli.Flag {
	return []cli.Flag{
		&cli.GenericFlag{Name: "ttl", Value: &h.ttl, Usage: "the `DURATION` for which the lock stays held without a sign of life from this host; longer than the file server may be away (default: 2m)", Category: "HOLDING"},
		&cli.GenericFlag{Name: "max-age", Aliases: []string{"maxage"}, Value: &h.maxAge, Usage: "break a lock that has no ttl of its own (a Python peer's, a damaged one) after this `DURATION` without a change", Category: "TAKING"},
		&cli.GenericFlag{Name: "poll", Value: &h.poll, Usage: "the longest `DURATION` between two attempts while waiting (default: 1s)", Category: "TAKING"},
	}
}

func (h *holding) options() multilock.Options {
	return multilock.Options{
		TTL: h.ttl.Value, Poll: h.poll.Value, Patience: multilock.Patience{MaxAge: h.maxAge.Value},
	}
}

// check finds what contradicts itself, before anything is touched.
func (h *holding) check(command string) error {
	if h.ttl.Given && h.ttl.Value == 0 {
		return console.Usagef(command, "--ttl 0: a lock without a time to live could never be taken over; use at least %s", source.MinTTL)
	}
	if h.poll.Given && h.poll.Value == 0 {
		return console.Usagef(command, "--poll 0: use a small duration instead, such as 10ms")
	}
	return nil
}

func Run(e *Env) *cli.Command {
	o := &runOptions{}
	return &cli.Command{
		Name:      "run",
		Usage:     "take the lock, run a command, release the lock",
		ArgsUsage: "[--] COMMAND [ARGUMENT...]",
		Description: `Takes the lock, runs COMMAND in a process group of its own, and releases the lock.
Does not wait for a lock that somebody alive holds, unless --wait says so. The
command's exit code is passed through.

The command gets MULTILOCK_NAME, MULTILOCK_GROUP, MULTILOCK_TOKEN and, where the
source has them, MULTILOCK_FENCE in its environment, and never MULTILOCK_PASSWORD.
If this process is killed, the command dies with it (Linux), and as long as any
of its processes lives the lock counts as held on this host. If this process is
stopped for so long that others may have the lock, the command is ended before
that, also one that was suspended with Ctrl-Z. The lock is released
when COMMAND itself ends: what it left in the background is not waited for.

Signals are passed on to it. TERM, INT, HUP and QUIT go to all of its processes, also
to those that left its process group (Linux); when COMMAND has ended then, what is
left of it gets TERM, and KILL after --grace, before the lock is released.

   multilock -d /shared run -n nightly --max-runtime 2h -- nightly.sh
   multilock -d /shared run -n report --wait forever -- make report

For cron on many hosts: -q -E 0 keeps quiet where another host runs the job, and
--every 1d keeps a host whose clock is late from running it again.

   0 2 * * *  multilock -d /shared run -q -E 0 -n nightly --every 1d -- nightly.sh

` + onceHelp + `

` + timeHelp + `

A DURATION is 90s, 5m, 2h30m, 1d, or a number of seconds.

` + console.ExitTable,
		Flags: append(append(o.holding.flags(), o.recording.flags()...),
			&cli.GenericFlag{Name: "wait", Aliases: []string{"w"}, Value: &o.wait, Usage: "wait this `DURATION` for the lock, or forever (default: do not wait)", Category: "TAKING"},
			&cli.GenericFlag{Name: "conflict-exit-code", Aliases: []string{"E"}, Value: &o.heldCode, Usage: "the exit `CODE` if somebody else holds the lock; 0 makes a refusal a success (default: 121)", Category: "TAKING"},
			&cli.GenericFlag{Name: "slots", Value: &o.slots, Usage: "let `N` holders in at a time, in the whole cluster; the job finds its own number in MULTILOCK_SLOT (default: 1, without a number)", Category: "TAKING"},
			&cli.GenericFlag{Name: "fail-after", Value: &o.failAfter, Usage: "exit with 120 if this host was refused `N` times in a row by the same holder: that one hangs (default: never)", Category: "TAKING"},
			&cli.GenericFlag{Name: "min-hold", Value: &o.minHold, Usage: "keep the lock at least this `DURATION`, so that hosts whose clocks are late do not run the job again", Category: "HOLDING"},
			&cli.GenericFlag{Name: "max-runtime", Value: &o.maxRuntime, Usage: "end the command and all its processes after this `DURATION`", Category: "JOB"},
			&cli.GenericFlag{Name: "grace", Value: &o.grace, Usage: "the `DURATION` between TERM and KILL (default: 10s)", Category: "JOB"},
			&cli.StringFlag{Name: "on-lost", Destination: &o.onLost, Value: string(runner.Term), DefaultText: string(runner.Term), Usage: "`WHAT` to do to the command if the lock is lost: term (and kill before others can have the lock), kill or ignore", Category: "JOB"},
		),
		Action: action(e, &o.common, o.check, func(ctx context.Context, src *place.Source) error { return o.run(ctx, e, src) }),
	}
}

const defaultGrace = 10 * time.Second

// check finds what contradicts itself.
func (o *runOptions) check(c *cli.Context) error {
	const name = "run"
	o.command = c.Args().Slice()
	if !o.grace.Given {
		o.grace.Value = defaultGrace
	}
	if !o.heldCode.Given {
		o.heldCode.Value = console.ExitHeld
	}
	switch {
	case len(o.command) == 0:
		return console.Usagef(name, "no command; write: multilock run [options] -- COMMAND [ARGUMENT...]")
	case !slices.Contains([]runner.OnLost{runner.Term, runner.Kill, runner.Ignore}, runner.OnLost(o.onLost)):
		return console.Usagef(name, "--on-lost %q: choose term, kill or ignore", o.onLost)
	case o.heldCode.Value < 0 || o.heldCode.Value > 255:
		return console.Usagef(name, "-E %d: an exit code is between 0 and 255", o.heldCode.Value)
	case o.failAfter.Given && o.failAfter.Value < 1:
		return console.Usagef(name, "--fail-after %d: must be at least 1", o.failAfter.Value)
	case o.failAfter.Given && o.wait.Forever:
		return console.Usagef(name, "--fail-after and --wait forever contradict each other: the wait never ends in a refusal")
	case o.maxRuntime.Given && o.maxRuntime.Value == 0:
		return console.Usagef(name, "--max-runtime 0: leave the option out for no limit")
	case o.maxRuntime.Given && o.minHold.Value > o.maxRuntime.Value+o.grace.Value && o.minHold.Given:
		return console.Usagef(name, "--min-hold %s is longer than --max-runtime %s with its grace of %s; the lock would be kept long after the job was ended",
			o.minHold.Value, o.maxRuntime.Value, o.grace.Value)
	}
	if err := o.checkSlots(name); err != nil {
		return err
	}
	if err := o.recording.check(name); err != nil {
		return err
	}
	if o.slots.Given && o.recorded() {
		return console.Usagef(name, "--slots and a recorded result (--once, --every) contradict each other: a job that runs once needs one slot")
	}
	return o.holding.check(name)
}

// run takes the lock and runs the command under it.
func (o *runOptions) run(ctx context.Context, e *Env, src *place.Source) error {
	if err := o.checkAbilities(src); err != nil {
		return err
	}
	sigs := console.CatchSignals()
	console.OutliveReaders()
	defer sigs.Release()
	start := time.Now()
	plan := o.plan()
	if settled, err := o.settledBefore(ctx, e, src, plan); settled || err != nil {
		return err
	}
	return o.runUnderLock(ctx, e, src, sigs, plan, start)
}

// runUnderLock takes the lock, and once more if it was lost before the job was started
// (this host slept just then) and there is time left to wait.
func (o *runOptions) runUnderLock(ctx context.Context, e *Env, src *place.Source, sigs *console.Signals, plan *lockgroup.Plan, start time.Time) error {
	opt := o.options()
	opt.Job, opt.User, opt.Command = true, o.User, console.CommandLine(o.command)
	for begin := time.Now(); ; {
		lock, slot, err := o.acquire(sigs.Until(ctx), e, src, opt, o.wait.After(time.Since(begin)))
		if err != nil {
			return o.refused(ctx, e, src, err)
		}
		r := &jobRun{
			env: e, opt: o, src: src, lock: lock, slot: slot, signals: sigs, plan: plan,
			waited: time.Since(start), limit: o.wait.After(time.Since(begin)),
		}
		if err := r.run(ctx); err == nil || !r.waitsOn(err) {
			return err
		}
		e.Say("lock %q was lost before the job was started; waiting on", r.lockName())
	}
}

// checkAbilities finds options that the source cannot fulfil.
func (o *runOptions) checkAbilities(src *place.Source) error {
	if o.recorded() {
		if _, err := place.Ability[source.Ledger](src, "run: "+o.option(), source.TraitResults); err != nil {
			return err
		}
	}
	if o.every.set {
		if _, err := place.Ability[source.Timekeeper](src, "run: --every", source.TraitOneClock); err != nil {
			return err
		}
	}
	if o.failAfter.Given {
		if _, err := place.Ability[source.Journal](src, "run: --fail-after", source.TraitHistory); err != nil {
			return err
		}
	}
	return o.checkTimed(src)
}

// take acquires a lock as --wait says, and tells who is in the way meanwhile.
func take(ctx context.Context, e *Env, src *place.Source, name string, opt multilock.Options, limit console.WaitLimit, o console.Output) (*multilock.Lock, error) {
	if !limit.Waits() {
		lock, err := multilock.TryAcquire(ctx, src.Locks, name, opt)
		return lock, src.IfLasting(err)
	}
	ctx, cancel := limit.Limited(ctx)
	defer cancel()
	way := &show.Obstacle{Src: src, Name: name, Self: src.Self}
	opt.Trouble = way.Met
	n := show.StartNotice(ctx, e.Env, o, way.Tell)
	defer n.Stop()
	lock, err := multilock.Acquire(ctx, src.Locks, name, opt)
	return lock, src.IfLasting(err)
}

// refused notes in the history that somebody else holds the lock, and counts how
// often that was so in a row.
func (o *runOptions) refused(ctx context.Context, e *Env, src *place.Source, err error) error {
	if !errors.Is(err, multilock.ErrHeld) {
		return err
	}
	var held *multilock.HeldError
	if o.failAfter.Given && errors.As(err, &held) {
		count, counted := countRefusal(ctx, src, held, o)
		if counted != nil {
			e.Say("--fail-after could not be counted: %v", counted)
		}
		if count >= o.failAfter.Value {
			return &console.CodedError{Code: console.ExitStarved, Text: fmt.Sprintf("refused %d times in a row by the same holder", count), Err: err}
		}
	}
	if console.ExitCode(err) == console.ExitHeld && o.heldCode.Value != console.ExitHeld {
		return &console.RefusedError{Code: o.heldCode.Value, Err: err}
	}
	return err
}
