package command

import (
	"context"
	"errors"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

type breakOptions struct {
	common
	maxAge console.Duration
	token  string
	force  bool
}

// breakReport is what "break --json" prints.
type breakReport struct {
	Broke bool      `json:"broke"`
	Lock  show.Lock `json:"lock"`
}

// Break breaks one lock.
func Break(e *Env) *cli.Command {
	o := &breakOptions{}
	return &cli.Command{
		Name:      "break",
		Usage:     "break a lock whose holder is dead",
		ArgsUsage: "[NAME]",
		Description: `Breaks the lock NAME if its holder is dead, watching it for as long as it takes to
be sure. A living holder's lock is left alone (exit code 121), unless --force is
given: then the holder notices at its next renewal, and "multilock run" ends its
job. With --token, only that one acquisition is broken, none that came after it.`,
		Flags: []cli.Flag{
			formerly(&cli.BoolFlag{Name: "force", Destination: &o.force, DisableDefaultText: true, Usage: "break it even if the holder lives"}, "f"),
			formerly(&cli.StringFlag{Name: "token", Destination: &o.token, Usage: "break it only if it has this `TOKEN` (see status --json)"}, "t"),
			formerly(&cli.GenericFlag{Name: "max-age", Value: &o.maxAge, Usage: "judge a lock without a ttl of its own by this `DURATION` without a change"}, "maxage"),
		},
		Action: action(e, &o.common, o.check, func(ctx context.Context, src *place.Source) error { return o.run(ctx, e, src) }),
	}
}

func (o *breakOptions) check(c *cli.Context) error {
	return o.readName(c, `"multilock clean" clears all that are dead`)
}

func (o *breakOptions) run(ctx context.Context, e *Env, src *place.Source) error {
	if err := src.Require("break", source.TraitBreakByForce); err != nil {
		return err
	}
	sigs := console.CatchSignals()
	defer sigs.Release()
	want := multilock.Want{Token: o.token, Alive: o.force, Patience: multilock.Patience{MaxAge: o.maxAge.Value}}
	seen, err := multilock.Break(sigs.Until(ctx), src.Locks, o.Name, want)
	if errors.Is(err, multilock.ErrFree) {
		return o.tell(e, false, seen)
	}
	if err != nil {
		return err
	}
	if o.force {
		noteForced(ctx, e, src, o, seen)
	}
	return o.tell(e, true, seen)
}

// noteForced writes down who broke a lock by force; Break itself notes the rest.
func noteForced(ctx context.Context, e *Env, src *place.Source, o *breakOptions, seen multilock.Sighting) {
	err := src.Note(ctx, source.Event{
		Time: time.Now(), What: source.EventBroke, Name: o.Name, Token: seen.Record.Token, By: src.Self, User: o.User,
		Holder: &seen.Record.Holder, Why: "by force, though " + seen.State.String() + ": " + seen.Why,
	})
	if err != nil {
		e.Say("warning: %v", err)
	}
}

func (o *breakOptions) tell(e *Env, broke bool, seen multilock.Sighting) error {
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
