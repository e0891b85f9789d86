package command

import (
	"context"
	"errors"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/options"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

type breakOptions struct {
	common
	maxAge console.Duration
	token  string
	force  bool
	now    bool
}

// breakReport is the output of "break --json".
type breakReport struct {
	Broke bool      `json:"broken_here"`
	Lock  show.Lock `json:"lock"`
}

// Break breaks one lock.
func Break(e *Env) *cli.Command {
	o := &breakOptions{}
	return &cli.Command{
		Name:      "break",
		Usage:     "clear a lock whose holder is dead",
		ArgsUsage: "[options] NAME",
		Description: `Clears the lock if its holder is dead, and watches it for as long as it takes to
be sure. Exits with 121 if the holder lives. "multilock clean" clears all locks
whose holders are dead.

   multilock -d /shared break nightly
   multilock -d /shared break nightly --force    even if the holder lives`,
		Flags:  e.Flags("break", options.Values{"force": &o.force, "now": &o.now, "token": &o.token, "max-age": &o.maxAge}),
		Action: action(e, &o.common, func(c *cli.Context) error { return o.readName(c, `"multilock clean" clears all that are dead`) }, func(ctx context.Context, src *place.Source) error { return o.run(ctx, e, src) }),
	}
}

func (o *breakOptions) run(ctx context.Context, e *Env, src *place.Source) error {
	if err := src.Require("break", source.TraitBreakByForce); err != nil {
		return err
	}
	sigs := console.CatchSignals()
	defer sigs.Release()
	want := multilock.BreakOptions{Token: o.token, Alive: o.force, StalePolicy: multilock.StalePolicy{MaxAge: o.maxAge.Value}}
	seen, err := multilock.Break(sigs.Until(ctx), src.Locks, o.Name, want)
	if errors.Is(err, multilock.ErrFree) {
		return o.tell(e, false, seen)
	}
	if err != nil {
		return err
	}
	if !o.force {
		return o.tell(e, true, seen)
	}
	noteForced(ctx, e, src, o, seen)
	if err := o.tell(e, true, seen); err != nil || o.now {
		return err
	}
	return o.awaitEviction(sigs.Until(ctx), e, src, seen)
}

// evictionPoll is the interval of inspections while an old holder runs on this host.
const evictionPoll = 100 * time.Millisecond

// awaitEviction waits until the old holder has noticed: it trusts its lock for at most the TTL. A lock
// without a heartbeat has no holder that could notice.
func (o *breakOptions) awaitEviction(ctx context.Context, e *Env, src *place.Source, seen multilock.Observation) error {
	if seen.Record.Heartbeat <= 0 || seen.State == multilock.StateDead {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, seen.Record.TTL, errEvicted)
	defer cancel()
	if !o.Quiet && !o.JSON {
		e.Say("the old holder may not have noticed yet: waiting until its job must have ended, %s at most; --now does not wait", console.Short(seen.Record.TTL))
	}
	jobs := &process.JobWatch{}
	for {
		known := source.Evidence{Record: seen.Record}
		known.AskHost(src.Self)
		if known.Holder.Life == process.Gone {
			known.SearchJob(jobs, src.Self)
		}
		if v, _ := known.JudgeProcesses(source.Rules{}); v.State == source.StateDead {
			return nil
		}
		if err := bounded.Sleep(ctx, evictionPoll); err != nil {
			break
		}
	}
	if err := context.Cause(ctx); !errors.Is(err, errEvicted) {
		return err
	}
	return nil
}

var errEvicted = errors.New("the holder's TTL is over")

// noteForced records a forced break. Break itself records other breaks.
func noteForced(ctx context.Context, e *Env, src *place.Source, o *breakOptions, seen multilock.Observation) {
	err := src.Note(ctx, source.Event{
		Time: time.Now(), What: source.EventBroke, Name: o.Name, Token: seen.Record.Token, By: src.Self, User: o.User,
		Holder: &seen.Record.Holder, Why: "by force, though " + seen.State.String() + ": " + seen.Why,
	})
	if err != nil {
		e.Say("warning: %v", err)
	}
}

func (o *breakOptions) tell(e *Env, broke bool, seen multilock.Observation) error {
	switch {
	case o.JSON:
		return e.PrintJSON(breakReport{Broke: broke, Lock: show.LockOf(o.Name, seen)})
	case o.Quiet:
		return nil
	case !broke:
		return e.Print("lock %q is free\n", o.Name)
	}
	return e.Print("broke lock %q, which was %s\n", o.Name, console.HeldBy(seen))
}
