package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/runner"
	"github.com/multilock/go/cmd/multilock/job"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock/source"
)

// runOptions is what "run" was asked to do.
type runOptions struct {
	common
	holding
	recording
	disclosure
	probing
	keeping
	hooks
	pinging
	sharing
	slots      console.Number
	wait       console.WaitLimit
	minHold    console.Duration
	maxRuntime console.Duration
	grace      console.Duration
	onLost     string
	heldCode   console.Number
	failAfter  console.Number
	command    []string
	shown      string // of the command, to others
}

// Run runs a command under a lock.
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

For cron on many hosts: -q -E 0 keeps quiet where another host runs the job, and
--every 1d keeps a host whose clock is late from running it again.

   0 2 * * *  multilock -d /shared run -q -E 0 -n nightly --every 1d -- nightly.sh

` + onceHelp + `

` + timeHelp + `

` + fairHelp + `

` + probeHelp + `

` + sharedHelp + `

` + keepingHelp + `

` + hooksHelp + `

` + pingHelp + `

A DURATION is 90s, 5m, 2h30m, 1d, or a number of seconds.

` + console.ExitTable,
		Flags: append(slices.Concat(o.holding.flags(), []cli.Flag{o.queueFlag(), o.probeFlag()}, o.recording.flags(), o.disclosure.flags(), o.keeping.flags(), o.hooks.flags(), o.pinging.flags(), o.sharing.flags()),
			&cli.GenericFlag{Name: "wait", Aliases: []string{"w"}, Value: &o.wait, Usage: "wait this `DURATION` for the lock, or forever (default: do not wait)", Category: "TAKING"},
			&cli.GenericFlag{Name: "conflict-exit-code", Aliases: []string{"E"}, Value: &o.heldCode, Usage: "the exit `CODE` if somebody else holds the lock; 0 makes a refusal a success (default: 121)", Category: "TAKING"},
			&cli.GenericFlag{Name: "slots", Value: &o.slots, Usage: "let `N` holders in at a time, in the whole cluster; the job finds its own number in MULTILOCK_SLOT (default: 1, without a number)", Category: "TAKING"},
			&cli.GenericFlag{Name: "fail-after", Value: &o.failAfter, Usage: "exit with 120 if this host was refused `N` times in a row by the same holder: that one hangs (default: never)", Category: "TAKING"},
			&cli.GenericFlag{Name: "min-hold", Value: &o.minHold, Usage: "keep the lock at least this `DURATION`, so that hosts whose clocks are late do not run the job again", Category: "HOLDING"},
			formerly(&cli.GenericFlag{Name: "max-runtime", Value: &o.maxRuntime, Usage: "end the command and all its processes after this `DURATION`", Category: "JOB"}, "timeout"),
			&cli.GenericFlag{Name: "grace", Value: &o.grace, Usage: "the `DURATION` between TERM and KILL (default: 10s)", Category: "JOB"},
			&cli.IntFlag{Name: "json-fd", Usage: "with --json: write JSON to this open `DESCRIPTOR`, 3 or more, and leave the standard error to the command", DefaultText: "the standard error", Category: "OUTPUT", Action: func(c *cli.Context, descriptor int) error {
				if !commonBool(c, "json") {
					return console.Usagef("run", "--json-fd says where JSON goes: it needs --json")
				}
				if err := e.SpeakTo(descriptor); err != nil {
					return console.Usagef("run", "--json-fd: %w", err)
				}
				return nil
			}},
			formerly(&cli.StringFlag{Name: "if-lost", Destination: &o.onLost, Value: string(runner.Term), DefaultText: string(runner.Term), Usage: "`WHAT` to do to the command if the lock is lost: term (and kill before others can have the lock), kill or ignore", Category: "JOB"}, "on-lost"),
		),
		Action: action(e, &o.common, func(c *cli.Context) error { return o.read(c, e) }, func(ctx context.Context, src *place.Source) error { return o.hinted(o.run(ctx, e, src)) }),
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

   --every 1h                          an hour after the last run: fits every line
   --every 1h@30m                      half past each hour
   --every 1d@07:30                    half past seven in UTC
   --every '1d@07:30[Europe/Berlin]'   by the wall clocks there, in summer and winter

A run is for the tick that is nearest; the command finds it in MULTILOCK_TICK. Two
runs never start within half the time between two ticks, but for --retries. A line
that fires more often, so that a job whose host died is not left until the next
tick, needs the form without "@", or --catch-up.

Where no host ran the job at a tick, that tick is missed; "overdue", "history" and
"report" tell of it. --catch-up makes up for it, once over all hosts:

   --catch-up none     the next tick is run, and nothing else (this is the default)
   --catch-up latest   the last tick that has come is run, however late; a host that
                       comes back at nine runs the job of two o'clock then
   --catch-up all:24   and the 24 last that were missed before it, oldest first, each
                       with its own MULTILOCK_TICK and its own --retries

With "@" and --catch-up a tick is never run more than half a minute before it comes
(a tenth of the time between two, if that is less), so the line may fire as often as
you like. Without "@" only all:N makes a difference. When a tick fails for good, those
after it are left to the next time the line fires.`

const timeHelp = `Under a lock that ends by time (cook+...) the command also gets MULTILOCK_REMAINING,
the seconds that it has, and MULTILOCK_UNTIL, when they are over by this host's clock
(seconds since 1970). What still runs then gets TERM, and KILL after --grace, but after
a quarter of the time at most; the exit code is 124. Such a lock stays taken until
its period is over, however early the command ends.`

// read reads the options and finds what contradicts itself.
func (o *runOptions) read(c *cli.Context, e *Env) error {
	if err := o.disclosure.read(c, e); err != nil {
		return err
	}
	o.command = c.Args().Slice()
	o.shown = o.words(o.command)
	if err := o.check(); err != nil {
		return err
	}
	return o.pinging.read(e, "run")
}

// hinted adds to a command that was not found what may have been meant: the lock's name, where
// other commands take it, or a line for a shell.
func (o *runOptions) hinted(err error) error {
	if !errors.As(err, new(*job.NotFoundError)) {
		return err
	}
	switch {
	case len(o.command) > 1 && o.command[1] == "--":
		return fmt.Errorf("%w; if that is the lock's name, write: run -n %s %s", err, o.command[0], console.CommandLine(o.command[1:]))
	case strings.ContainsAny(o.command[0], " \t\n;&|<>()$`*?\"'"):
		return fmt.Errorf("%w; if that is a line for a shell, write: -- sh -c %s", err, console.CommandLine(o.command))
	}
	return err
}

func (o *runOptions) check() error {
	const name = "run"
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
		return console.Usagef(name, "--if-lost %q: choose term, kill or ignore; a command goes to --on-loss", o.onLost)
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
	if err := errors.Join(o.checkSlots(name), o.sharing.check(name, o)); err != nil {
		return err
	}
	if err := o.keeping.check(name, o.slots.Given || o.shared); err != nil {
		return err
	}
	if err := o.hooks.check(name, o.every.set); err != nil {
		return err
	}
	if err := o.recording.check(name); err != nil {
		return err
	}
	if o.slots.Given && o.recorded() {
		return console.Usagef(name, "--slots and a recorded result (--once, --every) contradict each other: a job that runs once needs one slot")
	}
	if o.recorded() && !o.NameGiven {
		return console.Usagef(name, "%s records the result under the lock's name, and all jobs without a name would share one: add -n NAME", o.option())
	}
	if err := o.checkQueue(name, o.wait); err != nil {
		return err
	}
	return o.holding.check(name, o.UsualTTL())
}

func (o *runOptions) checkSlots(command string) error {
	switch {
	case !o.slots.Given:
		return nil
	case o.slots.Value < 1 || o.slots.Value > lockgroup.MaxSlots:
		return console.Usagef(command, "--slots %d: choose a number from 1 to %d", o.slots.Value, lockgroup.MaxSlots)
	case o.failAfter.Given:
		return console.Usagef(command, "--fail-after and --slots contradict each other: it counts the refusals by one holder")
	}
	return nil
}

// recording is the options of "run" that have the job's result recorded.
type recording struct {
	once    bool
	every   everyTick
	catchUp catchUp
	retries console.Number
}

func (r *recording) flags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "once", Destination: &r.once, DisableDefaultText: true, Usage: "run the job once and for all, on whichever host: do nothing if its success is recorded; needs -n", Category: "ONCE"},
		&cli.GenericFlag{Name: "every", Value: &r.every, Usage: "run the job once per `TICK` over all hosts, such as 1h, 1h@30m or 1d@07:30[Europe/Berlin]; needs -n; see above", Category: "ONCE"},
		&cli.GenericFlag{Name: "catch-up", Value: &r.catchUp, Usage: "with --every: `WHAT` to do about ticks without a run: none, latest (run the last one, however late), all:N (and the last N before it); see above", DefaultText: "none", Category: "ONCE"},
		&cli.GenericFlag{Name: "retries", Value: &r.retries, Usage: "with --once or --every: try a job that failed up to `N` times more, over all hosts together (default: none)", Category: "ONCE"},
	}
}

// recorded says whether the job's result is to be recorded.
func (r *recording) recorded() bool { return r.once || r.every.set }

// option is the one that has the result recorded.
func (r *recording) option() string {
	if r.every.set {
		return "--every"
	}
	return "--once"
}

func (r *recording) check(command string) error {
	switch {
	case r.once && r.every.set:
		return console.Usagef(command, "--once and --every contradict each other: choose once and for all, or once per tick")
	case r.catchUp.given && !r.every.set:
		return console.Usagef(command, "--catch-up is about the ticks of --every: it needs that")
	case r.retries.Given && !r.recorded():
		return console.Usagef(command, "--retries counts recorded attempts: it needs --once or --every")
	case r.retries.Value < 0:
		return console.Usagef(command, "--retries %d: must not be negative", r.retries.Value)
	}
	return nil
}

// plan is what was asked for, nil if the result is not to be recorded.
func (r *recording) plan() *lockgroup.Plan {
	if !r.recorded() {
		return nil
	}
	return &lockgroup.Plan{Retries: r.retries.Value, Every: r.every.value, CatchUp: r.catchUp.value}
}

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

// catchUp is the value of --catch-up.
type catchUp struct {
	value lockgroup.CatchUp
	given bool
}

func (c *catchUp) Set(text string) error {
	value, err := lockgroup.ParseCatchUp(text)
	var invalid *source.InvalidError
	if errors.As(err, &invalid) {
		return errors.New(invalid.Why)
	}
	c.value, c.given = value, true
	return err
}

func (c *catchUp) String() string { return "" }

func (t *everyTick) String() string {
	if t == nil {
		return ""
	}
	return t.value.String()
}
