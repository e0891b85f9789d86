package batch

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/multilock/go/internal/parallel"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
)

// announceComplete writes that a chunk is done, after the last of its pieces. Otherwise all hosts
// would have to read the record of each piece.
func (b *Batch) announceComplete(h *holding) {
	if !succeeded(h.last) || b.progressMap.absent() {
		return
	}
	u := b.unit(h.unit)
	root := b.unit(u.root)
	if u.Range == root.Range && len(h.last.Chunk.Returned) == 0 {
		return // announce has written that under the lock
	}
	ctx, cancel := b.lastUpdates()
	defer cancel()
	if !b.piecesRecorded(ctx, u.root) {
		return
	}
	for pause := mapFresh; ; pause *= 2 {
		var undone error
		err := b.progressMap.confirm(ctx, u.root, func(ctx context.Context) bool {
			undone = b.pieceDone(ctx, root)
			return undone == nil
		})
		if ctx.Err() == nil { // else other hosts read the records
			b.note(err)
		}
		if err != nil || !errors.Is(undone, errInspected) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// errInspected means that a piece is done, but its lock is held by a process that either checks it
// or forgets it.
var errInspected = errors.New("somebody looks at it")

// piecesRecorded reports whether all known pieces of a chunk have a result, with one listing.
func (b *Batch) piecesRecorded(ctx context.Context, root int) bool {
	var names []string
	b.localQueue.change(func() {
		for i := range b.localQueue.units {
			if u := &b.localQueue.units[i]; u.root == root {
				names = append(names, u.name())
			}
		}
	})
	return b.recorded.all(ctx, b.src, names)
}

// pieceDone returns nil if a piece and its parts are done and no process is about to forget them.
// It inspects the lock before it reads the result: a process that forgets a result acquires the
// lock, drops the progress map, and only then changes the result.
func (b *Batch) pieceDone(ctx context.Context, u unit) error {
	name := u.name()
	seen, err := multilock.Inspect(ctx, b.src, name, b.opt.StalePolicy)
	if err != nil {
		return err
	}
	r, err := b.current(ctx, name)
	if err != nil || r.Chunk == nil {
		return cmp.Or(err, lockgroup.ErrNotDone)
	}
	if r = b.ours(&u, r); !succeeded(r) {
		return lockgroup.ErrNotDone
	}
	if seen.State != multilock.StateFree {
		return errInspected
	}
	parts := r.Chunk.Returned
	return parallel.Do(parallel.Requests, len(parts), func(k int) error {
		return b.pieceDone(ctx, unit{Range: parts[k], root: u.root, of: u.Range})
	})
}

// succeeded reports whether all jobs of a record, except those given back, succeeded with complete
// output.
func succeeded(r multilock.Result) bool {
	c := r.Chunk
	return c != nil && c.Final() && c.Failed == 0 && c.Incomplete == 0
}
