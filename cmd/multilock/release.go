package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

type releaseOptions struct {
	common
	token string
}

func newReleaseCommand(e *env) *cli.Command {
	o := &releaseOptions{}
	return &cli.Command{
		Name:  "release",
		Usage: "give back a lock that acquire took",
		Description: `Releases the lock that has this token, from whatever host. If it has not that
token (any more), nothing is changed and the exit code is 122: the lock was lost.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "token", Aliases: []string{"t"}, Destination: &o.token, EnvVars: []string{"MULTILOCK_TOKEN"}, Usage: "the `TOKEN` that acquire printed"},
		},
		Action: func(c *cli.Context) error {
			var err error
			if o.common, err = readCommon(c, e); err != nil {
				return err
			}
			if c.Args().Present() {
				return console.Usagef("release", "unexpected %q; the lock's name is given with -n", c.Args().First())
			}
			if o.token == "" {
				return console.Usagef("release", "--token is missing: it is what acquire printed")
			}
			return o.locate(runRelease(c.Context, e, o))
		},
	}
}

func runRelease(ctx context.Context, e *env, o *releaseOptions) error {
	src, err := openSource(ctx, e, o.common)
	if err != nil {
		return err
	}
	for _, trait := range []source.Trait{source.TraitPromptRelease, source.TraitNamedHolder} {
		if err := src.require("release", trait); err != nil {
			return src.close(err)
		}
	}
	return src.close(release(ctx, e, src, o))
}

func release(ctx context.Context, e *env, src *openedSource, o *releaseOptions) error {
	seen, err := multilock.Break(ctx, src.locks, o.name, multilock.Want{Token: o.token, Alive: true})
	switch {
	case errors.Is(err, multilock.ErrFree):
		return &multilock.LostError{Name: o.name, Err: errors.New("nobody holds it any more")}
	case errors.Is(err, multilock.ErrHeld):
		return &multilock.LostError{Name: o.name, Err: fmt.Errorf("it is %s", console.HeldBy(seen))}
	case err != nil:
		return err
	}
	_ = src.note(ctx, source.Event{ // the lock is released, written down or not
		Time: time.Now(), What: source.EventReleased, Name: o.name, Token: o.token, By: src.self, User: o.user,
		Held: max(seen.Age, 0), Why: "released with its token",
	})
	if o.json {
		return e.PrintJSON(map[string]string{"name": o.name, "group": o.group, "released": o.token})
	}
	if o.verbose {
		e.Say("released lock %q", o.name)
	}
	return nil
}
