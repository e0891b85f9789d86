package batch

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/internal/parallel"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// feed is what this process tells the others, and what it hears from them.
type feed struct {
	follower source.Follower
	hung     bool // a call of the follower may not have come back
	urgent   chan struct{}

	mu      sync.Mutex
	pending []source.Event
}

func newFeed() *feed { return &feed{urgent: make(chan struct{}, 1)} }

const (
	// feedEvery is the time between two exchanges while there is something to tell.
	feedEvery = 250 * time.Millisecond
	// feedUnasked is the time after which they are read in any case, for the progress.
	feedUnasked = 10 * time.Second
	// manyNews are told at once.
	manyNews = 256
	// lastNewsPatience is for a server that is away when everything else has ended.
	lastNewsPatience = 5 * time.Second
)

// add keeps an event until the next exchange, and hastens that if it is urgent.
func (f *feed) add(e source.Event, urgent bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending = append(f.pending, e)
	if !urgent && len(f.pending) < manyNews {
		return
	}
	select {
	case f.urgent <- struct{}{}:
	default: // it has not been noticed yet
	}
}

// next reads on in the history, unless an earlier call hangs in there. What is left out of
// it is news that this process does not get.
func (f *feed) next(ctx context.Context, leftOut func(error)) ([]source.Event, error) {
	for !f.hung {
		events, err := bounded.Call(ctx, f.follower.Next)
		f.hung = ctx.Err() != nil
		if !errors.As(err, new(*source.LeftOutError)) {
			return events, err
		}
		leftOut(err)
	}
	return nil, context.Cause(ctx)
}

// close ends the reading, unless a call hangs: then the process's end does.
func (f *feed) close() error {
	if f.hung {
		return nil
	}
	return f.follower.Close()
}

// take empties the list of what is to be told.
func (f *feed) take() []source.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	events := f.pending
	f.pending = nil
	return events
}

// followFeed exchanges news until the channel is closed, and then once more. Nothing
// that is under way is given up before ctx ends.
func (b *Batch) followFeed(ctx context.Context, ended <-chan struct{}) {
	pause, heard := bounded.Pauses{Limit: b.opt.Poll}, time.Now()
	for b.feed.await(max(feedEvery, pause.Next()), ended) {
		if told := b.publish(ctx); !told && !b.needsNews() && time.Since(heard) < feedUnasked {
			continue
		}
		if b.listen(ctx) > 0 {
			pause.Reset()
		}
		heard = time.Now()
	}
	b.publish(ctx)
	if b.hands.isOver() {
		b.listen(ctx) // for the report
	}
	b.note(b.feed.close())
}

// needsNews says whether what others do decides what happens here next. Otherwise
// news save attempts at jobs that are done, and it is enough to hear them when a job
// of our own has ended: asking all the time while long jobs run would cost more
// than all the rest, and the more, the more hosts there are.
func (b *Batch) needsNews() bool {
	b.hands.mu.Lock()
	defer b.hands.mu.Unlock()
	return b.opt.Halt.When != HaltNever || b.hands.waits()
}

// await pauses until the next exchange. It reports false when there is to be no other.
func (f *feed) await(pause time.Duration, ended <-chan struct{}) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ended:
		return false
	case <-f.urgent:
	case <-timer.C:
	}
	return true
}

// publish tells what there is to tell. That it cannot be told stops no job: the
// others find out under the jobs' locks. It reports whether there was anything.
func (b *Batch) publish(ctx context.Context) (told bool) {
	events := b.feed.take()
	if len(events) == 0 {
		return false
	}
	b.note(b.recordEvents(ctx, events))
	return true
}

func (b *Batch) recordEvents(ctx context.Context, events []source.Event) error {
	_, err := bounded.Call(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, b.src.Record(ctx, events) })
	return err
}

// listen reads the news until there are no more. It returns how many there were.
func (b *Batch) listen(ctx context.Context) (count int) {
	for ctx.Err() == nil {
		events, err := b.feed.next(ctx, b.note)
		if err != nil || len(events) == 0 {
			if ctx.Err() == nil {
				b.note(err)
			}
			return count
		}
		count += len(events)
		b.hearEvents(ctx, events)
	}
	return count
}

// hearEvents draws the conclusions. A success is taken at the word of who committed it;
// of a failure the result itself tells whether it is final.
func (b *Batch) hearEvents(ctx context.Context, events []source.Event) {
	var failed []int
	for _, e := range events {
		i, ours := b.index[e.Name]
		switch {
		case !ours, e.What != source.EventCommitted, b.isSettled(i):
		case e.OK():
			b.absorb(i, multilock.Result{})
		default:
			failed = append(failed, i)
		}
	}
	if err := b.readSingles(ctx, failed); ctx.Err() == nil {
		b.note(err)
	}
}

func (b *Batch) isSettled(job int) bool {
	b.hands.mu.Lock()
	defer b.hands.mu.Unlock()
	return b.hands.state[job] != jobOpen
}

func (b *Batch) readSingles(ctx context.Context, jobs []int) error {
	return parallel.Do(parallel.Requests, len(jobs), func(k int) error { return b.readResult(ctx, jobs[k], b.jobs[jobs[k]].Name) })
}

// clockSlack is how far the clocks of hosts may be apart.
const clockSlack = 24 * time.Hour

// survey learns what was done before: which results there are says one listing,
// and that they are successes says the history, as far as it goes back. All
// others are read one by one.
func (b *Batch) survey(ctx context.Context) error {
	b.feed.follower = b.src.Follow(b.start.Add(-clockSlack))
	recent, err := b.recent(ctx)
	if err != nil {
		return err
	}
	names, err := bounded.Call(ctx, b.src.Results)
	if err != nil {
		return err
	}
	var unread []int
	for _, name := range names {
		i, ours := b.index[name]
		switch {
		case !ours:
		case recent[name]:
			b.absorb(i, multilock.Result{})
		default:
			unread = append(unread, i)
		}
	}
	return b.readSingles(ctx, unread)
}

// recent reads what the history tells up to now.
func (b *Batch) recent(ctx context.Context) (lockgroup.Successes, error) {
	successes := lockgroup.Successes{}
	for {
		events, err := b.feed.next(ctx, b.note)
		if err != nil || len(events) == 0 {
			return successes, err
		}
		for _, e := range events {
			successes.Add(e)
		}
	}
}
