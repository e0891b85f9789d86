package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/options"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

type releaseOptions struct {
	common
	token string
}

// releaseReport is the output of "release --json".
type releaseReport struct {
	Name  string `json:"name"`
	Group string `json:"group"`
	Token string `json:"token"`
}

// Release releases a lock of acquire.
func Release(e *Env) *cli.Command {
	o := &releaseOptions{}
	return &cli.Command{
		Name:      "release",
		Usage:     "release a lock of acquire",
		ArgsUsage: "--token TOKEN NAME",
		Description: `Releases the lock, or the share of it, that "multilock acquire" acquired, from any
host. If it is not held with this token any more, nothing changes and the exit
code is 122: the lock was lost.`,
		Flags:  e.Flags("release", options.Values{"token": &o.token}),
		Action: action(e, &o.common, func(c *cli.Context) error { return o.readName(c, "each has a token of its own") }, func(ctx context.Context, src *place.Source) error { return o.run(ctx, e, src) }),
	}
}

func (o *releaseOptions) run(ctx context.Context, e *Env, src *place.Source) error {
	if err := src.Require("release", source.TraitPromptRelease, source.TraitNamedHolder); err != nil {
		return err
	}
	before := time.Now() // before any other process could acquire it
	seen, err := o.release(ctx, src)
	switch {
	case errors.Is(err, multilock.ErrFree):
		return &multilock.LostError{Name: o.Name, Err: errors.New("it is no longer held")}
	case errors.Is(err, multilock.ErrHeld):
		return &multilock.LostError{Name: o.Name, Err: fmt.Errorf("it is %s", console.HeldBy(seen))}
	case err != nil:
		return err
	}
	_ = src.Note(ctx, source.Event{ // an error is ignored: the lock is released in any case
		Time: before, What: source.EventReleased, Name: seen.Record.Name, Token: o.token, By: src.Self, User: o.User,
		Held: max(seen.Age, 0), Why: "released with its token",
	})
	if o.JSON {
		return e.PrintJSON(releaseReport{o.Name, o.Group, o.token})
	}
	if o.Verbose {
		e.Say("released lock %q", o.Name)
	}
	return nil
}

// release releases the lock with the token. A shareable lock may have it as a reader's token.
func (o *releaseOptions) release(ctx context.Context, src *place.Source) (multilock.Observation, error) {
	seen, err := multilock.Break(ctx, src.Locks, o.Name, multilock.BreakOptions{Token: o.token, Alive: true})
	if !multilock.Shareable(o.Name) || !errors.Is(err, multilock.ErrFree) && !errors.Is(err, multilock.ErrHeld) {
		return seen, err
	}
	if part, shared := multilock.ReleaseShared(ctx, src.Locks, o.Name, o.token); !errors.Is(shared, multilock.ErrFree) {
		return part, shared
	}
	return seen, err
}
