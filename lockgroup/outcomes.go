package lockgroup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/internal/parallel"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

const (
	// DefaultSince is the default of BarrierOptions.Since.
	DefaultSince = 24 * time.Hour
	// endsWait is how long to wait for events that are not written yet: a run releases its lock
	// first, which opens the barrier.
	endsWait = 10 * time.Second
	// endsPause is the longest pause between two reads of the history.
	endsPause = 250 * time.Millisecond
)

// loadOutcomes reads from the history how the last run of each job ended, once nothing is held. It
// includes runs that ended before this barrier started, and holders that another process cleared.
func (b *Barrier) loadOutcomes(ctx context.Context) error {
	err := b.readEnds(ctx)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if !errors.Is(err, multilock.ErrUnsupported) && b.holders.sawAny() {
		return errors.Join(errors.New("how the jobs ended cannot be learned"), err)
	}
	b.setEnds(nil, err)
	return nil
}

// readEnds reads until all runs have an end, or endsWait is over.
func (b *Barrier) readEnds(ctx context.Context) error {
	follower, err := b.follow()
	if err != nil {
		return err
	}
	found, pause, start := newEnds(), bounded.Pauses{Limit: endsPause}, time.Now()
	var untold error // about omitted events
	for {
		left, err := readOn(ctx, follower, found)
		if err != nil {
			return err // do not close the follower: the call may still hang in it
		}
		untold = errors.Join(untold, left)
		if !b.anyOpen(ctx, found) || time.Since(start) >= endsWait {
			break
		}
		if err := bounded.Sleep(ctx, pause.Next()); err != nil {
			return err
		}
	}
	if err := b.readChunks(ctx, found); err != nil {
		return err
	}
	b.setEnds(found, untold)
	return follower.Close()
}

// readChunks reads which jobs of a chunk are not done; the history has only their number.
func (b *Barrier) readChunks(ctx context.Context, found *ends) error {
	ledger, ok := b.src.(source.Ledger)
	if !ok {
		return nil
	}
	last := slices.DeleteFunc(found.last(), func(r *run) bool { return !joblist.IsChunk(r.name) || r.event == nil })
	var mu sync.Mutex
	return parallel.Do(parallel.Requests, len(last), func(i int) error {
		r, err := bounded.Call(ctx, func(ctx context.Context) (multilock.Result, error) { return ledger.Result(ctx, last[i].name) })
		if errors.Is(err, multilock.ErrNoResult) || err == nil && r.Chunk == nil {
			return nil // use what the history has
		}
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		found.chunks[last[i].name] = notDone(r)
		return nil
	})
}

// notDone returns the jobs of a chunk that did not succeed.
func notDone(r multilock.Result) (jobs []multilock.Result) {
	joblist.EachJob(r, func(_ string, job multilock.Result) {
		if !job.OK() {
			jobs = append(jobs, job)
		}
	})
	return jobs
}

// follow opens the history.
func (b *Barrier) follow() (source.Follower, error) {
	since := b.start.Add(-b.opt.Since)
	if src, ok := b.src.(source.Journal); ok {
		return src.Follow(since), nil
	}
	return nil, fmt.Errorf("%w: it keeps no history", multilock.ErrUnsupported)
}

// readOn reads to the end of the history. left joins the errors about omitted events.
func readOn(ctx context.Context, follower source.Follower, found *ends) (left, err error) {
	for {
		events, err := bounded.Call(ctx, follower.Next)
		partly := errors.As(err, new(*source.LeftOutError))
		if partly {
			left = errors.Join(left, err)
		} else if err != nil {
			return left, err
		}
		for _, e := range events {
			found.add(e)
		}
		if len(events) == 0 && !partly {
			return left, nil
		}
	}
}

// anyOpen reports whether the end of a run is still missing. A run that holds its lock now started
// after the barrier opened, and is ignored.
func (b *Barrier) anyOpen(ctx context.Context, found *ends) bool {
	for _, r := range found.open() {
		seen, err := bounded.Call(ctx, func(ctx context.Context) (multilock.Observation, error) {
			return multilock.Inspect(ctx, b.src, r.name, b.opt.StalePolicy)
		})
		if err == nil && seen.State != multilock.StateFree && seen.Record.Token == r.event.Token {
			r.since = true
		}
	}
	return len(found.open()) > 0
}

func (b *Barrier) setEnds(found *ends, untold error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ends, b.untold = found, untold
}

// outcomes returns what was read from the history, nil before that.
func (b *Barrier) outcomes() (*ends, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ends, b.untold
}
