package lockgroup

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/internal/parallel"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// news is what this process tells the others, and what it hears from them.
type news struct {
	follower source.Follower
	hung     bool // a call of the follower may not have come back
	urgent   chan struct{}

	mu        sync.Mutex
	pending   []source.Event
	takenOver int
	trouble   error // the first that came up; the batch goes on without news
}

func newNews() *news { return &news{urgent: make(chan struct{}, 1)} }

const (
	// newsEvery is the time between two exchanges while there is something to tell.
	newsEvery = 250 * time.Millisecond
	// newsUnasked is the time after which they are read in any case, for the progress.
	newsUnasked = 10 * time.Second
	// manyNews are told at once.
	manyNews = 256
	// lastNewsPatience is for a server that is away when everything else has ended.
	lastNewsPatience = 5 * time.Second
)

// add keeps an event until the next exchange, and hastens that if it is urgent.
func (n *news) add(e source.Event, urgent bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pending = append(n.pending, e)
	if !urgent && len(n.pending) < manyNews {
		return
	}
	select {
	case n.urgent <- struct{}{}:
	default: // it has not been noticed yet
	}
}

// next reads on in the history, unless an earlier call hangs in there.
func (n *news) next(ctx context.Context) ([]source.Event, error) {
	if n.hung {
		return nil, context.Cause(ctx)
	}
	events, err := bounded.Call(ctx, n.follower.Next)
	n.hung = n.hung || ctx.Err() != nil
	return events, err
}

// close ends the reading, unless a call hangs: then the process's end does.
func (n *news) close() error {
	if n.hung {
		return nil
	}
	return n.follower.Close()
}

// take empties the list of what is to be told.
func (n *news) take() []source.Event {
	n.mu.Lock()
	defer n.mu.Unlock()
	events := n.pending
	n.pending = nil
	return events
}

// note keeps the first error.
func (n *news) note(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.trouble == nil {
		n.trouble = err
	}
}

func (n *news) countTakenOver() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.takenOver++
}

// sum is what the report tells of the news.
func (n *news) sum() (takenOver int, trouble error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.takenOver, n.trouble
}

// follow exchanges news until the channel is closed, and then once more. Nothing
// that is under way is given up before ctx ends.
func (b *Batch) follow(ctx context.Context, ended <-chan struct{}) {
	pause, heard := bounded.Pauses{Limit: b.opt.Poll}, time.Now()
	for b.news.await(max(newsEvery, pause.Next()), ended) {
		if told := b.publish(ctx); !told && !b.needsNews() && time.Since(heard) < newsUnasked {
			continue
		}
		if b.listen(ctx) > 0 {
			pause.Reset()
		}
		heard = time.Now()
	}
	b.publish(ctx)
	if b.agenda.count().open == 0 {
		b.listen(ctx) // for the report
	}
	b.news.note(b.news.close())
}

// needsNews says whether what others do decides what happens here next. Otherwise
// news save attempts at jobs that are done, and it is enough to hear them when a job
// of our own has ended: asking all the time while long jobs run would cost more
// than all the rest, and the more, the more hosts there are.
func (b *Batch) needsNews() bool { return b.opt.Halt.When != HaltNever || b.agenda.waits() }

// await pauses until the next exchange. It reports false when there is to be no other.
func (n *news) await(pause time.Duration, ended <-chan struct{}) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ended:
		return false
	case <-n.urgent:
	case <-timer.C:
	}
	return true
}

// publish tells what there is to tell. That it cannot be told stops no job: the
// others find out under the jobs' locks. It reports whether there was anything.
func (b *Batch) publish(ctx context.Context) (told bool) {
	events := b.news.take()
	if len(events) == 0 {
		return false
	}
	_, err := bounded.Call(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, b.src.Record(ctx, events) })
	b.news.note(err)
	return true
}

// listen reads the news until there are no more. It returns how many there were.
func (b *Batch) listen(ctx context.Context) (count int) {
	for ctx.Err() == nil {
		events, err := b.news.next(ctx)
		if err != nil || len(events) == 0 {
			if ctx.Err() == nil {
				b.news.note(err)
			}
			return count
		}
		count += len(events)
		b.hear(ctx, events)
	}
	return count
}

// hear draws the conclusions. A success is taken at the word of who committed it;
// of a failure the result itself tells whether it is final.
func (b *Batch) hear(ctx context.Context, events []source.Event) {
	var failed []string
	for _, e := range events {
		i, ours := b.index[e.Name]
		switch {
		case !ours:
		case e.What == source.EventBroke:
			b.news.countTakenOver()
		case e.What != source.EventCommitted || b.agenda.isSettled(i):
		case succeededIn(e):
			b.settle(i, multilock.Result{})
		default:
			failed = append(failed, e.Name)
		}
	}
	if err := b.read(ctx, failed); err != nil && ctx.Err() == nil {
		b.news.note(err)
	}
}

// succeededIn says whether there is nothing about a result but that it is a success.
func succeededIn(e source.Event) bool {
	return e.Exit != nil && *e.Exit == 0 && e.Signal == "" && e.Output == ""
}

// read reads results, and settles those jobs whose result is final.
func (b *Batch) read(ctx context.Context, names []string) error {
	return parallel.Do(readers, len(names), func(i int) error {
		name := names[i]
		r, err := bounded.Call(ctx, func(ctx context.Context) (multilock.Result, error) { return b.src.Result(ctx, name) })
		if errors.Is(err, multilock.ErrNoResult) {
			return nil // forgotten meanwhile, or not to be seen yet
		}
		if err != nil {
			return err
		}
		if b.plan.Next(time.Time{}, &r).Step != Run {
			b.settle(b.index[name], r)
		}
		return nil
	})
}

// survey learns what was done before: which results there are says one listing,
// and that they are successes says the history, as far as it goes back. All
// others are read one by one.
func (b *Batch) survey(ctx context.Context) error {
	b.news.follower = b.src.Follow(b.start.Add(-chronicleSlack))
	recent, err := b.recent(ctx)
	if err != nil {
		return err
	}
	names, err := bounded.Call(ctx, b.src.Results)
	if err != nil {
		return err
	}
	var unread []string
	for _, name := range names {
		i, ours := b.index[name]
		switch {
		case !ours:
		case recent[name] == onlySuccess:
			b.settle(i, multilock.Result{})
		default:
			unread = append(unread, name)
		}
	}
	return b.read(ctx, unread)
}

// record is what the recent history says of a name.
type record uint8

const (
	noRecord record = iota
	// onlySuccess: results were committed, and each was a success. A failure can
	// follow only after that was forgotten, so the result that is there is one, too.
	onlySuccess
	mixedRecord
)

func (b *Batch) recent(ctx context.Context) (map[string]record, error) {
	records := map[string]record{}
	for {
		events, err := b.news.next(ctx)
		if err != nil {
			return nil, err
		}
		if len(events) == 0 {
			return records, nil
		}
		for _, e := range events {
			switch {
			case e.What == source.EventForgot, e.What == source.EventCommitted && !succeededIn(e):
				records[e.Name] = mixedRecord
			case e.What == source.EventCommitted && records[e.Name] == noRecord:
				records[e.Name] = onlySuccess
			}
		}
	}
}
