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
	// DefaultSince is how far back from its beginning a barrier asks how jobs ended.
	DefaultSince = 24 * time.Hour
	// endsPatience is for ends that are still to be written: a run gives its lock back
	// first, which opens the barrier, and writes then.
	endsPatience = 10 * time.Second
	// endsPause is the longest pause between two readings meanwhile.
	endsPause = 250 * time.Millisecond
)

// recall learns from the history, when nothing is held any more, how the last run of
// each job ended: also of those that ended before this barrier was there, or whose dead
// holders somebody else has cleared away.
func (b *Barrier) recall(ctx context.Context) error {
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

// readEnds reads until the end is told of all that has begun, or will not be any more.
func (b *Barrier) readEnds(ctx context.Context) error {
	follower, err := b.follow()
	if err != nil {
		return err
	}
	found, pause, start := newEnds(), bounded.Pauses{Limit: endsPause}, time.Now()
	untold := b.partial()
	for {
		left, err := readOn(ctx, follower, found)
		if err != nil {
			return err // it may hang in there, and is left to the process's end
		}
		untold = errors.Join(untold, left)
		if !b.anyOpen(ctx, found) || time.Since(start) >= endsPatience {
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

// readChunks learns which jobs of a chunk are not done: the history tells that some are not.
func (b *Barrier) readChunks(ctx context.Context, found *ends) error {
	ledger, ok := b.src.(source.Ledger)
	if !ok {
		return nil
	}
	last := slices.DeleteFunc(found.last(), func(r *run) bool { return !joblist.IsChunk(r.name) || r.told == nil })
	var mu sync.Mutex
	return parallel.Do(parallel.Requests, len(last), func(i int) error {
		r, err := bounded.Call(ctx, func(ctx context.Context) (multilock.Result, error) { return ledger.Result(ctx, last[i].name) })
		if errors.Is(err, multilock.ErrNoResult) || err == nil && r.Chunk == nil {
			return nil // then what the history tells has to do
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

// notDone are the jobs of a chunk that did not succeed.
func notDone(r multilock.Result) (jobs []multilock.Result) {
	joblist.EachJob(r, func(_ string, job multilock.Result) {
		if !job.OK() {
			jobs = append(jobs, job)
		}
	})
	return jobs
}

// follow begins to read the history.
func (b *Barrier) follow() (source.Follower, error) {
	since := b.start.Add(-b.opt.Since)
	switch src := b.src.(type) {
	case source.Journal:
		return src.Follow(since), nil
	case source.Chronicle:
		return &rereader{src, since}, nil
	}
	return nil, fmt.Errorf("%w: it keeps no history", multilock.ErrUnsupported)
}

// rereader reads a history that cannot be followed as a whole each time: what is told
// twice changes nothing.
type rereader struct {
	src   source.Chronicle
	since time.Time
}

func (r *rereader) Next(ctx context.Context) ([]source.Event, error) {
	return source.Collect(r.src.History(ctx, r.since))
}

func (r *rereader) Close() error { return nil }

// readOn reads what there is. What is left out of it is told apart.
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
		if _, whole := follower.(*rereader); whole || len(events) == 0 && !partly {
			return left, nil
		}
	}
}

// anyOpen says whether an end is still to be told. Who holds its lock now has taken it
// since the barrier opened, and is not waited for.
func (b *Barrier) anyOpen(ctx context.Context, found *ends) bool {
	for _, r := range found.open() {
		seen, err := bounded.Call(ctx, func(ctx context.Context) (multilock.Sighting, error) {
			return multilock.Inspect(ctx, b.src, r.name, b.opt.StalePolicy)
		})
		if err == nil && seen.State != multilock.StateFree && seen.Record.Token == r.told.Token {
			r.since = true
		}
	}
	return len(found.open()) > 0
}

// partial says what the history leaves out, nil if it tells of every run.
func (b *Barrier) partial() error {
	if p, ok := source.PromiseOf(b.src, source.TraitRunHistory); ok && !p.Kept {
		return fmt.Errorf("%w: %s", multilock.ErrUnsupported, p.Why)
	}
	return nil
}

func (b *Barrier) setEnds(found *ends, untold error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ends, b.untold = found, untold
}

// told is what the history said, nil if it was not asked yet.
func (b *Barrier) told() (*ends, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ends, b.untold
}
