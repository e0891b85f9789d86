package batch

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/internal/parallel"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
)

// announceWhole tells the others of a chunk that it is done, with all that was given back of
// it: whoever ends the last piece does that. Otherwise each of them, on each host, would read
// the record of each piece.
func (b *Batch) announceWhole(h *holding) {
	if b.chunks == nil || !succeeded(h.last) {
		return
	}
	u := b.unit(h.unit)
	root := b.unit(u.root)
	if u.Range == root.Range && len(h.last.Chunk.Returned) == 0 {
		return // it was told under the lock
	}
	ctx, cancel := b.lastNews()
	defer cancel()
	if !b.piecesRecorded(ctx, u.root) {
		return
	}
	for pause := boardFresh; ; pause *= 2 {
		var undone error
		err := b.board.confirm(ctx, u.root, func(ctx context.Context) bool {
			undone = b.pieceDone(ctx, root)
			return undone == nil
		})
		if ctx.Err() == nil { // else the others read the records
			b.note(err)
		}
		if err != nil || !errors.Is(undone, errLooked) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// errLooked is for a piece that is done and whose lock somebody has all the same: he only looks
// whether it is, and tells nobody, or he forgets it.
var errLooked = errors.New("somebody looks at it")

// piecesRecorded says whether all pieces of a chunk that are known here have a result, as far
// as one listing tells.
func (b *Batch) piecesRecorded(ctx context.Context, root int) bool {
	var names []string
	b.hands.change(func() {
		for i := range b.hands.units {
			if u := &b.hands.units[i]; u.root == root {
				names = append(names, b.name(u))
			}
		}
	})
	return b.recorded.all(ctx, b.src, names)
}

// pieceDone is nil if nothing is left of a piece, and of what was given back of it, and
// nobody is about to forget any of it. The lock is looked at before the result is asked for:
// who forgets takes the lock, drops the board, and only then changes the result.
func (b *Batch) pieceDone(ctx context.Context, u unit) error {
	name := b.name(&u)
	seen, err := multilock.Inspect(ctx, b.src, name, b.opt.StalePolicy)
	if err != nil {
		return err
	}
	r, err := bounded.Call(ctx, func(ctx context.Context) (multilock.Result, error) { return b.chunks.Current(ctx, name) })
	if err != nil || r.Chunk == nil {
		return cmp.Or(err, lockgroup.ErrNotDone)
	}
	if r = b.ours(&u, r); !succeeded(r) {
		return lockgroup.ErrNotDone
	}
	if seen.State != multilock.StateFree {
		return errLooked
	}
	parts := r.Chunk.Returned
	return parallel.Do(parallel.Requests, len(parts), func(k int) error {
		return b.pieceDone(ctx, unit{Range: parts[k], root: u.root, of: u.Range})
	})
}

// succeeded says of what is recorded of a unit whether nothing is left of it but what was
// given back, nothing has failed, and no output is missing.
func succeeded(r multilock.Result) bool {
	c := r.Chunk
	return c != nil && c.Final() && c.Failed == 0 && c.Incomplete == 0
}
