// Package command has the commands: what options each has, what it does, and what it prints. A
// file has the name of its command; what several of them use is in common.go.
package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/options"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// Env is what all commands get: what is outside, and the kinds of lock sources there are.
type Env struct {
	*console.Env
	Kinds place.Kinds
	Line  *options.Line // what the command line says

	asked  place.Asked // of it: where the locks live
	out    console.Output
	jsonFD console.Number
}

// common holds the options that every command has, before or after its name.
type common struct {
	place.Place
	console.Output

	names []string // of the locks that a command is to deal with, as arguments or with -n
}

// Flags are the options of a command, and where their values go. Those that every command has go to
// the same place whether they stand before the command or after it.
func (e *Env) Flags(command string, values options.Values) []cli.Flag {
	all := options.Values{
		"dir": &e.asked.Dir, "group": &e.asked.Group, "name": &e.asked.Name, "source": &e.asked.Source, "trust": &e.asked.Trust,
		"legacy-peers": &e.asked.LegacyPeers, "require-shared": &e.asked.RequireShared,
		"json": &e.out.JSON, "quiet": &e.out.Quiet, "verbose": &e.out.Verbose,
	}
	maps.Copy(all, values)
	return options.Flags(e.Line, command, all)
}

// check finds what contradicts itself on the command line.
func (e *Env) check(c *cli.Context) error {
	err := options.ReadEnv(c.Command.Flags, e.Getenv)
	if err == nil {
		err = e.Line.Check(c.Command.Name, c.Args().Slice())
	}
	if err != nil {
		return &console.UsageError{Command: c.Command.Name, Err: err}
	}
	return nil
}

// readCommon reads the options that every command has.
func readCommon(c *cli.Context, e *Env) (common, error) {
	e.SpeakJSON = e.out.JSON
	if e.jsonFD.Given && e.out.JSON {
		if err := e.SpeakTo(e.jsonFD.Value); err != nil {
			return common{}, console.Usagef(c.Command.Name, "--json-fd: %w", err)
		}
	}
	if err := e.check(c); err != nil {
		return common{Output: e.out}, err
	}
	place, err := e.Kinds.Find(e.asked, e.Env)
	switch {
	case err != nil:
		err = &console.UsageError{Command: c.Command.Name, Err: err}
	case place.Exposed != "" && !e.out.Quiet:
		e.Say("warning: %s", place.Exposed)
	}
	names := c.Args().Slice()
	if place.NameGiven && !slices.Contains(names, place.Name) {
		names = append(names, place.Name)
	}
	return common{place, e.out, names}, err
}

// reading is a command: the options that every command has are read, and the others are checked
// before anything is touched.
func reading(e *Env, o *common, check, do func(*cli.Context) error) cli.ActionFunc {
	return func(c *cli.Context) (err error) {
		if *o, err = readCommon(c, e); err == nil && check != nil {
			err = check(c)
		}
		if err != nil {
			return err
		}
		return do(c)
	}
}

// action is a command for which the source is opened, and closed again.
func action(e *Env, o *common, check func(*cli.Context) error, do func(context.Context, *place.Source) error) cli.ActionFunc {
	return reading(e, o, check, func(c *cli.Context) error {
		src, err := e.Kinds.Open(c.Context, e.Env, o.Place)
		if err == nil {
			err = src.Close(do(c.Context, src))
		}
		return o.locate(err)
	})
}

// tellOneHost warns of locks that other hosts do not see.
func (o *common) tellOneHost(e *Env, src *place.Source) {
	if !o.Quiet && !o.JSON {
		src.TellOneHost(e.Say)
	}
}

// locate adds to an error where its lock is.
func (o *common) locate(err error) error {
	if err == nil {
		return nil
	}
	return &place.LocatedError{Place: o.Place, Quiet: o.Quiet, Err: err}
}

// readName takes the one lock's name that a command is to deal with, if there is any, from its
// arguments or from -n.
func (o *common) readName(c *cli.Context, instead string) error {
	switch {
	case len(o.names) > 1:
		return console.Usagef(c.Command.Name, "one lock at a time; %s", instead)
	case len(o.names) == 1:
		o.Name = o.names[0]
	}
	return source.CheckEnds("lock name", o.Name)
}

// holding is how a lock is to be held; several commands have these options.
type holding struct {
	ttl, maxAge, poll console.Duration
	fair, shared      bool
}

func (h *holding) options() multilock.Options {
	return multilock.Options{
		TTL: h.ttl.Value, Poll: h.poll.Value, StalePolicy: multilock.StalePolicy{MaxAge: h.maxAge.Value}, Fair: h.fair,
	}
}

// requireQueue refuses a source in which nobody can stand in line.
func requireQueue(src *place.Source, command string, fair bool) error {
	if !fair {
		return nil
	}
	_, err := place.Ability[source.Queueing](src, command+": --fair", source.TraitQueue)
	return err
}

const fairHelp = `With --fair those who wait stand in line, and who came first is first; a dead waiter
is passed over as a dead holder is. Who waits without it may overtake, so all should
say so. Without it nobody starves, but the order is by chance. On NFS a place in the
queue costs some 25 requests, and while many wait it costs less than to do without.`

// useTTL fills in the ttl that a configuration says.
func (h *holding) useTTL(p *place.Place) {
	if !h.ttl.Given {
		h.ttl.Value = p.UsualTTL()
	}
}

// request is a lock to be acquired with --wait and its options.
type request struct {
	name  string
	opt   multilock.Options
	terms func(multilock.Options) multilock.Terms
	limit console.WaitLimit
	out   console.Output
}

// take acquires the lock, and reports its holder while it waits.
func (q request) take(ctx context.Context, e *Env, src *place.Source) (*multilock.Lock, error) {
	return q.takeBy(ctx, e, src, multilock.TryAcquire, multilock.Acquire)
}

// taking is a way to take a lock.
type taking func(context.Context, multilock.Source, string, multilock.Terms) (*multilock.Lock, error)

// takeBy acquires the lock with try, or with wait if it has a limit.
func (q request) takeBy(ctx context.Context, e *Env, src *place.Source, try, wait taking) (*multilock.Lock, error) {
	if !q.limit.Waits() {
		lock, err := try(ctx, src.Locks, q.name, q.terms(q.opt))
		var held *multilock.HeldError
		if errors.As(err, &held) && isOurs(e, src, held.Sighting.Record) {
			held.Sighting.Why += "; this command runs under that lock"
		}
		return lock, src.IfLasting(err)
	}
	q.opt.Refuse = func(r source.Record) error {
		if isOurs(e, src, r) {
			return &console.CodedError{Code: console.ExitFailure, Text: fmt.Sprintf("lock %q is held by %s, and this command runs under that lock: the wait would never end; leave the lock out here, or choose another name", q.name, r.Holder)}
		}
		return nil
	}
	ctx, cancel := q.limit.Limited(ctx)
	defer cancel()
	way := &show.Obstacle{Src: src, Name: q.name, Self: src.Self}
	q.opt.Trouble = way.Met
	defer show.StartNotice(ctx, e.Env, q.out, way.Tell)()
	lock, err := wait(ctx, src.Locks, q.name, q.terms(q.opt))
	return lock, src.IfLasting(err)
}

// isOurs says whether this command runs under a lock: its holder is an ancestor of this process, or
// has given us its token, as a job gets it. An ancestor with several threads, which holds the lock
// for none of its jobs, may release it while this command waits.
func isOurs(e *Env, src *place.Source, r source.Record) bool {
	if token := e.Getenv("MULTILOCK_TOKEN"); token != "" && token == r.Token {
		return true
	}
	return r.Holder.PID > 0 && r.Holder.Judge(src.Self).Life == process.Alive && isAncestor(r.Holder.PID, r.Job)
}

// errIncomplete says that all jobs are done, and that what some have printed is lost.
var errIncomplete = &console.CodedError{Code: console.ExitNotDone, Text: "the output of some jobs is not complete"}

// outputPolicy is the value of --output: whether a job whose output was lost is one
// with which all is well.
type outputPolicy string

func (o outputPolicy) isBestEffort() bool { return o == "best-effort" }

// join adds to the error of a batch or a barrier what is to be thought of its jobs' output.
func (o outputPolicy) join(err error, incomplete []multilock.Result) error {
	if o.isBestEffort() || len(incomplete) == 0 {
		return err
	}
	return errors.Join(err, errIncomplete)
}

// tell names the jobs whose output is not complete.
func (o outputPolicy) tell(e *Env, place *common, incomplete []show.Incomplete) {
	warning := ""
	if o.isBestEffort() {
		warning = "warning: "
	}
	for _, v := range show.AtMost(e.Env, incomplete) {
		e.Say("%sjob %q is done, but its output is not complete: %s; to let it run again: %s", warning, v.Name, v.Output, place.Forgetting(v.Name))
	}
}
