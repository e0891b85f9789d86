// Package command has the commands: what options each has, what it does, and what it prints. A
// file has the name of its command; what several of them use is in common.go.
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
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// Env is what all commands get: what is outside, and the kinds of lock sources there are.
type Env struct {
	*console.Env
	Kinds place.Kinds
}

// common holds the options that every command has, before or after its name.
type common struct {
	place.Place
	console.Output
}

// Flags are defined twice, for the program and for each command. The
// environment is not left to the library: an option on the command line wins
// over it wherever it stands, and an empty variable counts as none.
func Flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "dir", Aliases: []string{"d"}, Usage: "the shared `DIRECTORY` with the locks; this or --source is needed [$" + place.EnvDir + "]", Category: "LOCK"},
		&cli.StringFlag{Name: "group", Aliases: []string{"g"}, Usage: "the lock `GROUP`, a directory in it (default: .locks; of another source, what has no group; batch has no default) [$" + place.EnvGroup + "]", Category: "LOCK"},
		formerly(&cli.StringFlag{Name: "name", Aliases: []string{"n"}, Usage: "the lock's `NAME` (default: lock; of a CloudShell reservation, MUTEX; for --once and --every there is no default)", Category: "LOCK"}, "lockname", "l"),
		&cli.StringFlag{Name: "source", Usage: "where the locks live, as a `URL`; -d DIRECTORY stands for file:DIRECTORY; see multilock --help [$" + place.EnvSource + "]", Category: "LOCK"},
		toggle("legacy-peers", "hosts with the Python MultiLock use the same group; all hosts must say so [$"+place.EnvLegacyPeers+"]", "LOCK"),
		toggle("require-shared", "use a directory only if \"doctor --mark\" has marked it, so that nothing is locked where the share is not mounted [$"+place.EnvRequireShared+"]", "LOCK"),
		&cli.StringFlag{Name: "trust", Usage: "believe these `USERS`, too (names with commas between them), or any: what they left in the directory, and what others may do to it (default: root, you, and a group whose directory it is) [$" + place.EnvTrust + "]", Category: "LOCK"},
		toggle("json", "print the result as JSON", "OUTPUT"),
		toggle("quiet", "print errors only; a refusal is none, its exit code says enough", "OUTPUT", "q"),
		toggle("verbose", "print what is done, too", "OUTPUT", "v"),
	}
}

// toggle is an option without a value, and without a remark on its default.
func toggle(name, usage, category string, aliases ...string) *cli.BoolFlag {
	return &cli.BoolFlag{Name: name, Aliases: aliases, Usage: usage, Category: category, DisableDefaultText: true}
}

// readCommon reads the options that every command has.
func readCommon(c *cli.Context, e *Env) (common, error) {
	asked := askedOf(c)
	quiet := commonBool(c, "quiet")
	e.SpeakJSON = commonBool(c, "json")
	place, err := e.Kinds.Find(asked, e.Env)
	switch {
	case err != nil:
		err = &console.UsageError{Command: c.Command.Name, Err: err}
	case place.Exposed != "" && !quiet:
		e.Say("warning: %s", place.Exposed)
	}
	return common{place, console.Output{JSON: commonBool(c, "json"), Quiet: quiet, Verbose: commonBool(c, "verbose")}}, err
}

// askedOf is what a command line says of where locks live.
func askedOf(c *cli.Context) place.Asked {
	asked := place.Asked{Dir: commonString(c, "dir"), Source: commonString(c, "source"), Group: commonString(c, "group"), Name: commonString(c, "name"), Trust: commonString(c, "trust")}
	asked.LegacyPeers, asked.RequireShared = commonSwitch(c, "legacy-peers"), commonSwitch(c, "require-shared")
	return asked
}

// action is a command's: the options that every command has are read, the others are
// checked before anything is touched, then the source is opened, and closed again.
func action(e *Env, o *common, check func(*cli.Context) error, do func(context.Context, *place.Source) error) cli.ActionFunc {
	return func(c *cli.Context) (err error) {
		if *o, err = readCommon(c, e); err != nil {
			return err
		}
		if err := check(c); err != nil {
			return err
		}
		src, err := e.Kinds.Open(c.Context, e.Env, o.Place)
		if err == nil {
			err = src.Close(do(c.Context, src))
		}
		return o.locate(err)
	}
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

// givenAt finds where on the command line an option is given: at the command
// itself, or before it.
func givenAt(c *cli.Context, name string) *cli.Context {
	for _, level := range c.Lineage() {
		if slices.Contains(level.LocalFlagNames(), name) {
			return level
		}
	}
	return nil
}

// namesAsked are the locks that a command is to deal with, as arguments or with
// -n; none if nothing was said.
func namesAsked(c *cli.Context) []string {
	names := c.Args().Slice()
	if level := givenAt(c, "name"); level != nil && !slices.Contains(names, level.String("name")) {
		names = append(names, level.String("name"))
	}
	return names
}

// noName is for commands that are about no lock.
func noName(c *cli.Context) error {
	if givenAt(c, "name") != nil {
		return console.Usagef(c.Command.Name, "-n names a lock, and this is about none: leave it out")
	}
	return nil
}

// noArguments is for commands that take none, nor a lock's name.
func noArguments(c *cli.Context) error {
	if err := noName(c); err != nil {
		return err
	}
	if c.Args().Present() {
		return console.Usagef(c.Command.Name, "unexpected %q: there is nothing to name", c.Args().First())
	}
	return nil
}

// readName takes the one lock's name that a command is to deal with, if there is any, from its
// arguments or from -n.
func (o *common) readName(c *cli.Context, instead string) error {
	names := namesAsked(c)
	switch {
	case len(names) > 1:
		return console.Usagef(c.Command.Name, "one lock at a time; %s", instead)
	case len(names) == 1:
		o.Name = names[0]
	}
	return source.CheckEnds("lock name", o.Name)
}

// commonString is nil if the option is not given.
func commonString(c *cli.Context, name string) *string {
	level := givenAt(c, name)
	if level == nil {
		return nil
	}
	value := level.String(name)
	return &value
}

// commonSwitch is nil if the option is not given.
func commonSwitch(c *cli.Context, name string) *bool {
	level := givenAt(c, name)
	if level == nil {
		return nil
	}
	value := level.Bool(name)
	return &value
}

func commonBool(c *cli.Context, name string) bool {
	level := givenAt(c, name)
	return level != nil && level.Bool(name)
}

// holding is how a lock is to be held; several commands have these options.
type holding struct {
	ttl, maxAge, poll console.Duration
	fair              bool
}

func (h *holding) flags() []cli.Flag {
	return []cli.Flag{
		&cli.GenericFlag{Name: "ttl", Value: &h.ttl, Usage: "the `DURATION` for which the lock stays held without a sign of life from this host; longer than the file server may be away (default: 2m)", Category: "HOLDING"},
		formerly(&cli.GenericFlag{Name: "max-age", Value: &h.maxAge, Usage: "break a lock that has no ttl of its own (a Python peer's, a damaged one) after this `DURATION` without a change", Category: "TAKING"}, "maxage"),
		&cli.GenericFlag{Name: "poll", Value: &h.poll, Usage: "the longest `DURATION` between two attempts while waiting (default: 1s)", Category: "TAKING"},
	}
}

func (h *holding) options() multilock.Options {
	return multilock.Options{
		TTL: h.ttl.Value, Poll: h.poll.Value, StalePolicy: multilock.StalePolicy{MaxAge: h.maxAge.Value}, Fair: h.fair,
	}
}

// queueFlag is for commands that wait for their lock.
func (h *holding) queueFlag() cli.Flag {
	return &cli.BoolFlag{Name: "fair", Destination: &h.fair, DisableDefaultText: true, Usage: "with --wait: stand in line with all others who say so; who came first is first", Category: "TAKING"}
}

// checkQueue finds a place in a queue for one who does not wait.
func (h *holding) checkQueue(command string, wait console.WaitLimit) error {
	if h.fair && !wait.Waits() {
		return console.Usagef(command, "--fair says who of those that wait is first: it needs --wait")
	}
	return nil
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

// check finds what contradicts itself, before anything is touched. Usual is the ttl if none is
// given.
func (h *holding) check(command string, usual time.Duration) error {
	if !h.ttl.Given {
		h.ttl.Value = usual
	}
	if h.ttl.Given && h.ttl.Value == 0 {
		return console.Usagef(command, "--ttl 0: a lock without a time to live could never be taken over; use at least %s", source.MinTTL)
	}
	if h.poll.Given && h.poll.Value == 0 {
		return console.Usagef(command, "--poll 0: use a small duration instead, such as 10ms")
	}
	return nil
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

const defaultGrace = 10 * time.Second

// errIncomplete says that all jobs are done, and that what some have printed is lost.
var errIncomplete = &console.CodedError{Code: console.ExitNotDone, Text: "the output of some jobs is not complete"}

// outputPolicy is the value of --output: whether a job whose output was lost is one
// with which all is well.
type outputPolicy struct{ bestEffort bool }

func (o *outputPolicy) String() string { return "" }

func (o *outputPolicy) Set(text string) error {
	if text != "required" && text != "best-effort" {
		return errors.New("choose required or best-effort")
	}
	o.bestEffort = text == "best-effort"
	return nil
}

func (o *outputPolicy) flag() cli.Flag {
	return &cli.GenericFlag{Name: "output", Value: o, Usage: "`WHAT` to think of a job that succeeded and whose output could not be kept (a full disk): required (exit code 1), best-effort (a warning)", DefaultText: "required", Category: "OUTPUT"}
}

// join adds to the error of a batch or a barrier what is to be thought of its jobs' output.
func (o *outputPolicy) join(err error, incomplete []multilock.Result) error {
	if o.bestEffort || len(incomplete) == 0 {
		return err
	}
	return errors.Join(err, errIncomplete)
}

// tell names the jobs whose output is not complete.
func (o *outputPolicy) tell(e *Env, place *common, incomplete []show.Incomplete) {
	warning := ""
	if o.bestEffort {
		warning = "warning: "
	}
	for _, v := range show.AtMost(e.Env, incomplete) {
		e.Say("%sjob %q is done, but its output is not complete: %s; to let it run again: %s", warning, v.Name, v.Output, place.Forgetting(v.Name))
	}
}
