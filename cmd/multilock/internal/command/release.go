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

// Release gives back what acquire took.
func Release(e *Env) *cli.Command {
	o := &releaseOptions{}
	return &cli.Command{
		Name:      "release",
		Usage:     "give back a lock that acquire took",
		ArgsUsage: "--token TOKEN NAME",
		Description: `Gives back the lock, or the part in a shared one, that "multilock acquire" took,
from whatever host. If it is not held with this token any more, nothing is
changed and the exit code is 122: the lock was lost.`,
		Flags:  e.Flags("release", options.Values{"token": &o.token}),
		Action: action(e, &o.common, func(c *cli.Context) error { return o.readName(c, "each has a token of its own") }, func(ctx context.Context, src *place.Source) error { return o.run(ctx, e, src) }),
	}
}

func (o *releaseOptions) run(ctx context.Context, e *Env, src *place.Source) error {
	if err := src.Require("release", source.TraitPromptRelease, source.TraitNamedHolder); err != nil {
		return err
	}
	before := time.Now() // when nobody else could have it yet
	seen, err := o.release(ctx, src)
	switch {
	case errors.Is(err, multilock.ErrFree):
		return &multilock.LostError{Name: o.Name, Err: errors.New("nobody holds it any more")}
	case errors.Is(err, multilock.ErrHeld):
		return &multilock.LostError{Name: o.Name, Err: fmt.Errorf("it is %s", console.HeldBy(seen))}
	case err != nil:
		return err
	}
	_ = src.Note(ctx, source.Event{ // the lock is released, written down or not
		Time: before, What: source.EventReleased, Name: seen.Record.Name, Token: o.token, By: src.Self, User: o.User,
		Held: max(seen.Age, 0), Why: "released with its token",
	})
	if o.JSON {
		return e.PrintJSON(map[string]string{"name": o.Name, "group": o.Group, "released": o.token})
	}
	if o.Verbose {
		e.Say("released lock %q", o.Name)
	}
	return nil
}

// release frees the lock that has the token. In one that can be shared it may be a reader's.
func (o *releaseOptions) release(ctx context.Context, src *place.Source) (multilock.Sighting, error) {
	seen, err := multilock.Break(ctx, src.Locks, o.Name, multilock.BreakOptions{Token: o.token, Alive: true})
	if !multilock.Shareable(o.Name) || !errors.Is(err, multilock.ErrFree) && !errors.Is(err, multilock.ErrHeld) {
		return seen, err
	}
	if part, shared := multilock.ReleaseShared(ctx, src.Locks, o.Name, o.token); !errors.Is(shared, multilock.ErrFree) {
		return part, shared
	}
	return seen, err
}
