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
	"github.com/multilock/go/multilock/source"
)

// announce writes updates on a chunk that this process holds.
func (x *exchange) announce(h *holding) {
	ctx, cancel := x.lastUpdates()
	defer cancel()
	u := x.schedule.unit(h.unit)
	switch {
	case u.Range != x.schedule.unit(u.root).Range, x.progressMap.absent():
	case len(h.last.Chunk.Returned) == 0 && succeeded(h.last):
		x.note(x.progressMap.confirm(ctx, u.root, func(ctx context.Context) bool { return h.lock.Verify(ctx) == nil }))
	default:
		x.note(x.progressMap.markChanged(ctx, u.root))
	}
	event := source.CommittedEvent(h.last, time.Now())
	_, err := bounded.Call(ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, x.src.Record(ctx, []source.Event{event})
	})
	x.note(err)
}

// reportResult informs other processes of a job's result. It reports a result of an unfinished chunk
// only if that is urgent or due.
func (x *exchange) reportResult(h *holding, r multilock.Result, urgent bool) {
	if r.Final || !urgent && time.Since(h.reported) < x.schedule.progressPause() {
		return
	}
	h.reported = time.Now()
	x.note(x.progressMap.markChanged(context.WithoutCancel(x.working), x.schedule.unit(h.unit).root))
}

func (x *exchange) lastUpdates() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(x.working), lastUpdatesTimeout)
}

// announceComplete writes that a chunk is done, after the last of its pieces. Otherwise all hosts
// would have to read the record of each piece.
func (x *exchange) announceComplete(h *holding) {
	if !succeeded(h.last) || x.progressMap.absent() {
		return
	}
	u := x.schedule.unit(h.unit)
	root := x.schedule.unit(u.root)
	if u.Range == root.Range && len(h.last.Chunk.Returned) == 0 {
		return // announce has written that the chunk is done, under the lock
	}
	ctx, cancel := x.lastUpdates()
	defer cancel()
	if !x.piecesRecorded(ctx, u.root) {
		return
	}
	for pause := mapFresh; ; pause *= 2 {
		var undone error
		err := x.progressMap.confirm(ctx, u.root, func(ctx context.Context) bool {
			undone = x.pieceDone(ctx, root)
			return undone == nil
		})
		if ctx.Err() == nil { // else other hosts read the records
			x.note(err)
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

// errInspected means that a piece is done, but a process that checks or deletes its result holds its
// lock.
var errInspected = errors.New("another process inspects it")

// piecesRecorded reports whether all known pieces of a chunk have a result, with one listing.
func (x *exchange) piecesRecorded(ctx context.Context, root int) bool {
	var names []string
	x.schedule.change(func() {
		for i := range x.schedule.units {
			if u := &x.schedule.units[i]; u.root == root {
				names = append(names, u.name())
			}
		}
	})
	return x.recorded.all(ctx, x.src, names)
}

// pieceDone returns nil if a piece and its parts are done and no process is about to delete their
// results. It inspects the lock before it reads the result: a process that deletes a result acquires
// the lock, drops the progress map, and only then changes the result.
func (x *exchange) pieceDone(ctx context.Context, u unit) error {
	name := u.name()
	seen, err := multilock.Inspect(ctx, x.src, name, x.opt.StalePolicy)
	if err != nil {
		return err
	}
	r, err := x.current(ctx, name)
	if err != nil || r.Chunk == nil {
		return cmp.Or(err, lockgroup.ErrNotDone)
	}
	if r = x.schedule.ours(&u, r); !succeeded(r) {
		return lockgroup.ErrNotDone
	}
	if seen.State != multilock.StateFree {
		return errInspected
	}
	parts := r.Chunk.Returned
	return parallel.Do(parallel.Requests, len(parts), func(k int) error {
		return x.pieceDone(ctx, unit{Range: parts[k], root: u.root, of: u.Range})
	})
}

// succeeded reports whether all jobs of a record, except those given back, succeeded with complete
// output.
func succeeded(r multilock.Result) bool {
	c := r.Chunk
	return c != nil && c.Final() && c.Failed == 0 && c.Incomplete == 0
}
