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

// eventLog exchanges events about finished jobs with other processes.
type eventLog struct {
	follower source.Follower
	hung     bool // a call of the follower may hang
	urgent   chan struct{}

	mu      sync.Mutex
	pending []source.Event
}

func newEventLog() *eventLog { return &eventLog{urgent: make(chan struct{}, 1)} }

const (
	// logEvery is the pause between two exchanges while there are events to write.
	logEvery = 250 * time.Millisecond
	// logUnasked is the pause between two reads otherwise, for the progress.
	logUnasked = 10 * time.Second
	// manyEvents are written at once.
	manyEvents = 256
	// lastUpdatesTimeout bounds the last exchange, in case the server is down.
	lastUpdatesTimeout = 5 * time.Second
)

// add queues an event for the next exchange, which is immediate if urgent.
func (l *eventLog) add(e source.Event, urgent bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = append(l.pending, e)
	if !urgent && len(l.pending) < manyEvents {
		return
	}
	select {
	case l.urgent <- struct{}{}:
	default: // an exchange is pending already
	}
}

// next reads on in the history, unless an earlier call hangs. It passes errors about omitted events
// to leftOut.
func (l *eventLog) next(ctx context.Context, leftOut func(error)) ([]source.Event, error) {
	for !l.hung {
		events, err := bounded.Call(ctx, l.follower.Next)
		l.hung = ctx.Err() != nil
		if !errors.As(err, new(*source.LeftOutError)) {
			return events, err
		}
		leftOut(err)
	}
	return nil, context.Cause(ctx)
}

// close closes the follower, unless a call of it hangs.
func (l *eventLog) close() error {
	if l.hung {
		return nil
	}
	return l.follower.Close()
}

// take returns and clears the pending events.
func (l *eventLog) take() []source.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	events := l.pending
	l.pending = nil
	return events
}

// followEventLog exchanges events until the channel is closed, and then once more. ctx bounds the
// calls.
func (b *Batch) followEventLog(ctx context.Context, ended <-chan struct{}) {
	pause, lastRead := bounded.Pauses{Limit: b.opt.Poll}, time.Now()
	for b.eventLog.await(max(logEvery, pause.Next()), ended) {
		if sent := b.publish(ctx); !sent && !b.needsUpdates() && time.Since(lastRead) < logUnasked {
			continue
		}
		if b.listen(ctx) > 0 {
			pause.Reset()
		}
		lastRead = time.Now()
	}
	b.publish(ctx)
	if b.localQueue.isOver() {
		b.listen(ctx) // for the report
	}
	b.note(b.eventLog.close())
}

// needsUpdates reports whether other hosts' results decide what happens here next. Otherwise
// reading after each job of this host is enough: more reads would cost more than they save.
func (b *Batch) needsUpdates() bool {
	b.localQueue.mu.Lock()
	defer b.localQueue.mu.Unlock()
	return b.opt.Halt.When != HaltNever || b.localQueue.waits()
}

// await waits for the next exchange. It returns false when the channel is closed.
func (l *eventLog) await(pause time.Duration, ended <-chan struct{}) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ended:
		return false
	case <-l.urgent:
	case <-timer.C:
	}
	return true
}

// publish writes the pending events and reports whether there were any. An error stops no job:
// other hosts find the results under the jobs' locks.
func (b *Batch) publish(ctx context.Context) (sent bool) {
	events := b.eventLog.take()
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

// listen reads events until there are no more, and returns their number.
func (b *Batch) listen(ctx context.Context) (count int) {
	for ctx.Err() == nil {
		events, err := b.eventLog.next(ctx, b.note)
		if err != nil || len(events) == 0 {
			if ctx.Err() == nil {
				b.note(err)
			}
			return count
		}
		count += len(events)
		b.mergeEvents(ctx, events)
	}
	return count
}

// mergeEvents merges events. An event is enough for a success; for a failure it reads the result,
// which may not be final.
func (b *Batch) mergeEvents(ctx context.Context, events []source.Event) {
	var failed []int
	for _, e := range events {
		i, ours := b.index[e.Name]
		switch {
		case !ours, e.What != source.EventCommitted, b.isSettled(i):
		case e.OK():
			b.merge(i, multilock.Result{})
		default:
			failed = append(failed, i)
		}
	}
	if err := b.readSingles(ctx, failed); ctx.Err() == nil {
		b.note(err)
	}
}

func (b *Batch) isSettled(job int) bool {
	b.localQueue.mu.Lock()
	defer b.localQueue.mu.Unlock()
	return b.localQueue.state[job] != jobOpen
}

func (b *Batch) readSingles(ctx context.Context, jobs []int) error {
	return parallel.Do(parallel.Requests, len(jobs), func(k int) error { return b.readResult(ctx, jobs[k], b.jobs[jobs[k]].Name) })
}

// clockSlack bounds the difference of hosts' clocks.
const clockSlack = 24 * time.Hour

// survey loads what is done: it lists the results, takes successes from the history, and reads the
// other results one by one.
func (b *Batch) survey(ctx context.Context) error {
	b.eventLog.follower = b.src.Follow(b.start.Add(-clockSlack))
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
			b.merge(i, multilock.Result{})
		default:
			unread = append(unread, i)
		}
	}
	return b.readSingles(ctx, unread)
}

// recent reads the successes in the history so far.
func (b *Batch) recent(ctx context.Context) (lockgroup.Successes, error) {
	successes := lockgroup.Successes{}
	for {
		events, err := b.eventLog.next(ctx, b.note)
		if err != nil || len(events) == 0 {
			return successes, err
		}
		for _, e := range events {
			successes.Add(e)
		}
	}
}
