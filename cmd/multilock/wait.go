package main

import (
	"context"
	"errors"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

type waitOptions struct {
	common
	timeout, settle, since, poll, maxAge console.Duration
	expect                               console.Number
	named                                nameList
	members                              []string
	output                               outputPolicy
}

// defaultSettle is for how long an untouched group must stay vacant: time enough
// for the jobs that the same script has just started to take their locks.
const defaultSettle = time.Second

func newWaitCommand(e *env) *cli.Command {
	o := &waitOptions{}
	return &cli.Command{
		Name:  "wait",
		Usage: "wait until nothing in the group is held, or until jobs are done",
		Description: `A barrier: starts the next step when the jobs of the last one have ended.

   for i in 1 2 3; do ssh host$i multilock -d /shared run -n job$i -- work $i & done
   multilock -d /shared wait && next-step

Without --expect and --members it returns when nothing in the group is held, at one
moment. It cannot know of jobs that have not taken their lock yet: start them
first. A group in which nothing is held from the start is watched for a second
(--settle) before it is believed.

Then it asks the group's history how the last run of each name ended: a job whose
last run failed, lost its lock, or died and was cleared away by anybody, is not done,
and the exit code is 1, whenever and wherever the wait was started. A run that
succeeds clears that. What ended longer ago than --since (a day) before the wait began
does not count, by the clocks of the hosts that ran it: they may be wrong by as much
as you leave room for. A script's "acquire" and "release" have no exit code, and do not
fail. Under --slots a job is known by its command. A source that keeps no such history
says so, and 0 means then that nothing is held any more.

With --members or --expect it returns when those jobs have a final result, and may
be started before them, on any host. Only "run --once" and its like leave results.

A holder that died is not waited for: its lock is cleared on the same evidence as
by whoever wants the lock, and it is reported. Its job counts as not done, unless
somebody else has done it since (--members, --expect).

Exits with 0 if everything is done, 1 if a job failed or died, and 124 if --timeout
passed; then it says who is missing, and who holds what.

A DURATION is 90s, 5m, 2h30m, 1d, or a number of seconds.

` + console.ExitTable,
		Flags: []cli.Flag{
			&cli.GenericFlag{Name: "since", Value: &o.since, Usage: "count jobs that ended up to this `DURATION` before the wait began (default: 1d)"},
			&cli.GenericFlag{Name: "timeout", Aliases: []string{"t"}, Value: &o.timeout, Usage: "give up after this `DURATION` (default: never)"},
			&cli.GenericFlag{Name: "members", Value: &o.named, Usage: "wait for the results of these jobs, `NAME`[,NAME...]; may be given several times"},
			&cli.StringFlag{Name: "members-from", Usage: "read the names of the jobs from a `FILE`, one a line; - is the standard input. Of NAME<TAB>COMMAND the name counts, # begins a comment"},
			&cli.GenericFlag{Name: "expect", Value: &o.expect, Usage: "wait until `N` jobs have a result, whatever their names, and nothing is held"},
			o.output.flag(),
			&cli.GenericFlag{Name: "settle", Value: &o.settle, Usage: "the `DURATION` for which a group that is vacant from the start must stay so (default: 1s)"},
			&cli.GenericFlag{Name: "poll", Value: &o.poll, Usage: "the longest `DURATION` between two polls (default: 1s)"},
			&cli.GenericFlag{Name: "max-age", Aliases: []string{"maxage"}, Value: &o.maxAge, Usage: "take a holder without a ttl of its own for dead after this `DURATION` without a change"},
		},
		Action: func(c *cli.Context) error {
			if err := o.read(c, e); err != nil {
				return err
			}
			return runWait(c.Context, e, o)
		},
	}
}

// read reads the options and finds what contradicts itself.
func (o *waitOptions) read(c *cli.Context, e *env) (err error) {
	const name = "wait"
	if o.common, err = readCommon(c, e); err != nil {
		return err
	}
	if o.members, err = readMembers(e, o.named, c.String("members-from")); err != nil {
		return err
	}
	named := c.IsSet("members") || c.IsSet("members-from")
	if !o.settle.Given {
		o.settle.Value = defaultSettle
	}
	switch {
	case c.Args().Present(), givenAt(c, "name") != nil:
		return console.Usagef(name, "it waits for the whole group; write --members NAME to wait for some of its jobs")
	case named && len(o.members) == 0:
		return console.Usagef(name, "--members and --members-from name nobody")
	case named && o.expect.Given:
		return console.Usagef(name, "--expect and --members contradict each other: the members' number is known")
	case o.expect.Given && o.expect.Value < 1:
		return console.Usagef(name, "--expect %d: must be at least 1", o.expect.Value)
	case o.settle.Given && (named || o.expect.Given):
		return console.Usagef(name, "--settle is for a wait without --members and --expect, which wait for jobs that are not there yet")
	case o.since.Given && (named || o.expect.Given):
		return console.Usagef(name, "--since is for a wait without --members and --expect, whose results count however old they are")
	case o.since.Given && o.since.Value == 0:
		return console.Usagef(name, "--since 0: use a small duration instead, such as 1m; hosts' clocks differ")
	case o.poll.Given && o.poll.Value == 0:
		return console.Usagef(name, "--poll 0: use a small duration instead, such as 10ms")
	}
	return nil
}

func (o *waitOptions) barrier() lockgroup.BarrierOptions {
	return lockgroup.BarrierOptions{
		Members: o.members, Expect: o.expect.Value, Settle: o.settle.Value, Since: o.since.Value, Poll: o.poll.Value,
		Patience: multilock.Patience{MaxAge: o.maxAge.Value},
	}
}

func runWait(ctx context.Context, e *env, o *waitOptions) error {
	src, err := openSource(ctx, e, o.common)
	if err != nil {
		return err
	}
	group, err := o.askable(src)
	if err != nil {
		return src.close(err)
	}
	barrier, err := lockgroup.NewBarrier(group, o.barrier())
	if err != nil {
		return src.close(err)
	}
	return src.close(waitAt(ctx, e, o, src, barrier))
}

// askable is the source as one at which a barrier can wait.
func (o *waitOptions) askable(src *openedSource) (source.Group, error) {
	if len(o.members) > 0 || o.expect.Given {
		if _, err := ability[source.Changes](src, "wait", source.TraitResults); err != nil {
			return nil, err
		}
	}
	if err := src.checkNames(o.members); err != nil {
		return nil, err
	}
	return ability[source.Group](src, "wait", source.TraitCheapBarrier)
}

// waitAt waits, shows how far it has come, and reports how it ended.
func waitAt(ctx context.Context, e *env, o *waitOptions, src *openedSource, barrier *lockgroup.Barrier) error {
	sigs := console.CatchSignals()
	defer sigs.Release()
	limit := console.WaitLimit{Duration: o.timeout, Forever: !o.timeout.Given}
	ctx, cancel := limit.Limited(sigs.Until(ctx))
	defer cancel()
	start := time.Now()
	shown := startWaitProgress(ctx, e, o.common, barrier)
	report, err := barrier.Wait(ctx)
	shown.stop()
	err = o.output.join(err, report.Incomplete)
	view := viewOfWait(src, report, time.Since(start), err)
	if o.json {
		return errors.Join(err, e.PrintJSON(view))
	}
	if !errors.As(err, new(*console.SignalError)) {
		view.tell(e, o)
	}
	if o.verbose && err == nil {
		e.Say("nothing is left to wait for, after %s", console.Short(time.Since(start)))
	}
	return err
}
