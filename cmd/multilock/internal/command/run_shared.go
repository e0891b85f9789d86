package command

import (
	"context"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/multilock"
)

// sharing is the option of jobs that share a lock.
type sharing struct{ shared bool }

func (s *sharing) flags() []cli.Flag {
	return []cli.Flag{&cli.BoolFlag{Name: "shared", Destination: &s.shared, DisableDefaultText: true, Usage: "share the lock with all others who do: many readers, or one writer; for names that end in .shared", Category: "TAKING"}}
}

const sharedHelp = `With --shared many hold the lock together, and keep out whoever wants it alone: readers
and writers. The name ends in ".shared", so that a writer, which is any run without
--shared, knows that there may be readers. One that waits lets no new reader in, and
begins when the last one has ended, or is found dead as any holder is:

   multilock -d /shared run --shared -n db.shared --wait forever -- ./report
   multilock -d /shared run          -n db.shared --wait 1h      -- ./load`

func (s *sharing) check(command string, o *runOptions) error {
	switch {
	case o.slots.Given && multilock.Shareable(o.Name):
		return console.Usagef(command, "--slots: the name %q is that of a lock which readers share, and they would not be seen; choose another", o.Name)
	case s.shared && (o.slots.Given || o.recorded() || o.failAfter.Given):
		return console.Usagef(command, "--shared is for many at a time; --slots, --once, --every and --fail-after are not: leave them out")
	}
	return s.checkName(command, o.Name)
}

func (s *sharing) checkName(command, name string) error {
	if !s.shared || multilock.Shareable(name) {
		return nil
	}
	return console.Usagef(command, "--shared: the name must end in .shared, so that whoever takes the lock alone looks for readers; write -n %s.shared, there and here", strings.TrimSuffix(name, "."))
}

// take acquires the lock, shared or exclusive.
func (s *sharing) take(ctx context.Context, e *Env, src *place.Source, q request) (*multilock.Lock, error) {
	if s.shared {
		return q.takeBy(ctx, e, src, multilock.TryAcquireShared, multilock.AcquireShared)
	}
	return q.take(ctx, e, src)
}
