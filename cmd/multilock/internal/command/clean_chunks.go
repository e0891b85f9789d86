package command

import (
	"context"
	"errors"
	"slices"

	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/multilock"
)

// chunks removes the results of chunks. It removes none while a host is working on the list.
func (f *forgetting) chunks(ctx context.Context, outermost []*joblist.Nest) error {
	if len(outermost) == 0 {
		return nil
	}
	why := f.anyHeld(ctx)
	failed := make([]error, len(outermost))
	show.InParallel(len(outermost), func(i int) {
		names, err := outermost[i].Names(), why
		if err = errors.Join(err, context.Cause(ctx)); err == nil && !f.dryRun {
			names, err = f.chunk(ctx, outermost[i])
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		failed[i] = f.report.addAll(names, err)
	})
	return errors.Join(failed...)
}

// anyHeld returns an error if a chunk's lock is held.
func (f *forgetting) anyHeld(ctx context.Context) error {
	held, err := f.src.Locks.Names(ctx)
	if err != nil {
		return err
	}
	for _, name := range held {
		if _, chunk := joblist.ParseChunkName(name); !chunk {
			continue
		}
		if _, err := f.wouldForget(ctx, f.src, name); err != nil {
			return err
		}
	}
	return nil
}

// chunk removes the results of a chunk and of the parts that were returned from it, under all their locks:
// the holder of a part relies on the record that the part was returned. It returns the names of the removed
// results, or all names if it fails before it removes any.
func (f *forgetting) chunk(ctx context.Context, n *joblist.Nest) (names []string, err error) {
	var held nestLocks
	defer func() { err = errors.Join(err, held.release(ctx)) }()
	if err = f.lockNest(ctx, n, &held); err != nil {
		return n.Names(), err
	}
	if err = f.dropProgressMap(ctx); err != nil {
		return n.Names(), err
	}
	// Innermost first, so that an interruption leaves a consistent rest.
	for _, lock := range slices.Backward(held.recorded) {
		if err = lock.Forget(ctx); err != nil {
			return names, err
		}
		names = append(names, lock.Record().Name)
		f.noteForgot(ctx, f.src, lock.Record(), lock.Record().Name)
	}
	return names, nil
}

// nestLocks are the locks of a chunk and of the parts that were returned from it, in that order.
type nestLocks struct{ all, recorded []*multilock.Lock } // recorded: those with a result

// lockNest locks the chunk first, so that a process that acquires a part's lock sees that.
func (f *forgetting) lockNest(ctx context.Context, n *joblist.Nest, held *nestLocks) error {
	lock, err := f.lock(ctx, f.src, joblist.ChunkName(n.Range))
	if err != nil {
		return err
	}
	held.all = append(held.all, lock)
	last, err := lock.Outcome(ctx)
	switch {
	case err == nil:
		held.recorded = append(held.recorded, lock)
	case !errors.Is(err, multilock.ErrNoResult):
		return err
	}
	parts := slices.Clone(n.Parts)
	if last.Chunk != nil {
		for _, part := range last.Chunk.Returned {
			if !slices.ContainsFunc(parts, func(known *joblist.Nest) bool { return known.Range == part }) {
				parts = append(parts, &joblist.Nest{Range: part})
			}
		}
	}
	for _, part := range parts {
		if err := f.lockNest(ctx, part, held); err != nil {
			return err
		}
	}
	return nil
}

func (l *nestLocks) release(ctx context.Context) (err error) {
	for _, lock := range l.all {
		err = errors.Join(err, lock.Release(context.WithoutCancel(ctx)))
	}
	return err
}
