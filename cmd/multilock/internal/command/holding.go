package command

import (
	"context"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

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
	defer show.StartNotice(ctx, e.Env, o, way.Tell)()
	lock, err := multilock.Acquire(ctx, src.Locks, name, opt)
	return lock, src.IfLasting(err)
}

const defaultGrace = 10 * time.Second
