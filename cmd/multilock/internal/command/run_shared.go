package command

import (
	"context"
	"strings"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/multilock"
)

const sharedHelp = `With --shared many hold the lock together, and keep out whoever wants it alone: readers
and writers. The name ends in ".shared", so that a writer, which is any run without
--shared, knows that there may be readers. One that waits lets no new reader in, and
begins when the last one has ended, or is found dead as any holder is:

   multilock -d /shared run --shared -n db.shared --wait forever -- ./report
   multilock -d /shared run          -n db.shared --wait 1h      -- ./load`

// checkName refuses to share a lock whose name does not say so.
func (h *holding) checkName(command, name string) error {
	if !h.shared || multilock.Shareable(name) {
		return nil
	}
	return console.Usagef(command, "--shared: the name must end in .shared, so that whoever takes the lock alone looks for readers; write -n %s.shared, there and here", strings.TrimSuffix(name, "."))
}

// take acquires the lock, shared or exclusive.
func (h *holding) take(ctx context.Context, e *Env, src *place.Source, q request) (*multilock.Lock, error) {
	if h.shared {
		return q.takeBy(ctx, e, src, multilock.TryAcquireShared, multilock.AcquireShared)
	}
	return q.take(ctx, e, src)
}
