package multilock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock/source"
)

// QueuePosition is the first position in the queue for a lock.
type QueuePosition struct {
	queue  source.Queue
	ticket *Lock
	alone  bool
}

// Enqueue queues for the lock name until no process that came earlier is ahead, or ctx ends. It does not
// acquire the lock: the caller acquires it, and then calls Leave. Acquire with Options.Fair does all of it.
//
// A process that waits outside of the queue may be faster. A dead process that is ahead is skipped, on the
// same evidence that would break its lock. The error is ErrUnsupported if the source has no queues; a
// *QueuedError joined to context.Cause(ctx) names the process ahead.
func Enqueue(ctx context.Context, src Source, name string, t Terms) (*QueuePosition, error) {
	able, ok := source.Ability[source.Queueing](src, source.TraitQueue)
	if !ok {
		return nil, fmt.Errorf("join the queue for lock %q: %w", name, ErrUnsupported)
	}
	opt, err := t.terms().check(wait)
	if err != nil {
		return nil, err
	}
	queue, err := able.Queue(name)
	if err != nil {
		return nil, err
	}
	w := &waiter{name: name, queue: queue, opt: opt, mark: source.NewToken(), watched: map[string]*watched{}, stop: func() {}}
	defer w.forget()
	if err := w.wait(ctx); err != nil {
		(&QueuePosition{queue, w.ticket, w.alone}).Leave()
		return nil, w.explain(ctx, err)
	}
	return &QueuePosition{queue, w.ticket, w.alone}, nil
}

// Leave gives up the position, so that the next waiter may acquire the lock. It does not wait for a source
// that does not answer: the others then wait until the ticket is stale.
func (p *QueuePosition) Leave() {
	ctx, cancel := context.WithTimeout(context.Background(), leaving)
	defer cancel()
	if p.ticket != nil {
		giveUp(ctx, p.ticket)
	}
	if p.alone {
		_, _ = bounded.Call(ctx, p.queue.Empty)
	}
	_ = p.queue.Close() // the queue is not shared
}

// giveUp releases a ticket, and retries once: otherwise the waiters behind wait for its TTL.
func giveUp(ctx context.Context, ticket *Lock) {
	for range 2 {
		if !errors.Is(ticket.Release(ctx), ErrUnsure) {
			return
		}
	}
	_ = ticket.Detach()
}

// QueuedError means that other processes were ahead in the queue for a lock.
type QueuedError struct {
	Name  string
	Ahead int
	// Next is the ticket right ahead, as of its last inspection.
	Next Observation
}

func (e *QueuedError) Error() string {
	text := fmt.Sprintf("number %d in the queue for lock %q", e.Ahead+1, e.Name)
	if e.Next.Record.Token == "" {
		return text
	}
	return text + ", behind " + e.Next.Record.Holder.String()
}

// Is makes errors.Is(err, ErrHeld) true: another process is to have the lock.
func (e *QueuedError) Is(target error) bool { return target == ErrHeld }

// ticketName orders tickets by their numbers. A waiter uses the number after the largest that it sees; if
// two waiters use the same number, their marks decide.
func ticketName(number uint64, mark string) string { return fmt.Sprintf("%020d-%s", number, mark) }

// numberOf is the number of a ticket; ok is false for any other name.
func numberOf(ticket string) (number uint64, ok bool) {
	digits, mark, _ := strings.Cut(ticket, "-")
	number, err := strconv.ParseUint(digits, 10, 64)
	return number, err == nil && ticketName(number, mark) == ticket && source.IsToken(mark)
}

// waiter waits in a queue.
type waiter struct {
	name   string
	queue  source.Queue
	opt    terms
	mark   string // of its tickets
	own    string // the ticket's name
	ticket *Lock
	since  time.Time // when the ticket was drawn
	first  int       // the largest number of tickets ahead: those drawn at the same time appear later
	ahead  []string  // the tickets ahead, the next one last
	alone  bool      // the last listing showed no ticket behind
	// watched are the tickets ahead that are inspected.
	watched map[string]*watched
	next    Observation // the last observation of the ticket right ahead
	behind  string      // the ticket whose release news reports
	news    <-chan struct{}
	stop    func()
}

// watched is a ticket ahead. Its holder counts as alive before the first inspection.
type watched struct {
	source.Observer
	seen   Observation
	passed bool      // its waiter is gone, or that cannot be determined
	at     time.Time // when the next inspection is due
}

// wait returns when no ticket is ahead.
func (w *waiter) wait(ctx context.Context) error {
	trouble := bounded.Pauses{First: firstPause, Limit: w.opt.Poll}
	for {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		pause, err := w.step(ctx)
		switch {
		case err != nil && !w.shouldRetry(err):
			return err
		case err != nil:
			pause = trouble.Next()
		case pause == 0:
			return nil
		case w.behindAnother():
			continue // it may have been released before the subscription
		default:
			trouble.Reset()
		}
		if _, err := bounded.Wait(ctx, pause, w.news); err != nil {
			return err
		}
	}
}

// behindAnother subscribes to the release of the ticket right ahead, if that has changed, and
// reports whether it did.
func (w *waiter) behindAnother() bool {
	if len(w.ahead) == 0 || w.ahead[len(w.ahead)-1] == w.behind {
		return false
	}
	w.behind = w.ahead[len(w.ahead)-1]
	w.stop()
	w.news, w.stop = w.queue.Left(w.behind)
	return w.news != nil
}

// errUnlisted means that the own ticket is not in the listing: either the listing comes from a cache, or
// the ticket is lost, and another one is drawn.
var errUnlisted = errors.New("the own ticket is not in the queue")

// isRetryable reports whether to retry after an error. It includes ErrUnsure: a ticket in doubt is not a lock
// in doubt.
func isRetryable(err error) bool {
	return errors.Is(err, ErrPassing) || errors.Is(err, ErrUnsure) || errors.Is(err, ErrHeld) || errors.Is(err, errUnlisted)
}

// shouldRetry reports whether to retry after an error, and passes it to the Trouble callback.
func (w *waiter) shouldRetry(err error) bool {
	if w.opt.Trouble != nil && (errors.Is(err, ErrPassing) || errors.Is(err, ErrUnsure)) {
		w.opt.Trouble(err)
	}
	return isRetryable(err)
}

// step draws a ticket unless the waiter has one, finds the tickets ahead, and returns how long to pause: 0 if
// no ticket is ahead.
func (w *waiter) step(ctx context.Context) (pause time.Duration, err error) {
	names, err := bounded.Call(ctx, w.queue.Names)
	if err != nil {
		return 0, err
	}
	if w.ticket == nil || w.ticket.Context().Err() != nil {
		if err := w.draw(ctx, names); err != nil {
			return 0, err
		}
		names, err = bounded.Call(ctx, w.queue.Names) // other waiters may have drawn the same number
		if err != nil {
			return 0, err
		}
	}
	if !slices.Contains(names, w.own) {
		if err := w.ticket.Verify(ctx); err != nil && !errors.Is(err, ErrLost) {
			return 0, err
		}
		return 0, errUnlisted
	}
	w.rank(names)
	next, err := w.watch(ctx)
	if err != nil || len(w.ahead) == 0 {
		return 0, err
	}
	return max(min(next, w.pace()), leastQueued), nil
}

// draw draws the ticket after the last one. The ticket's TTL is at most the default, even if the lock's is
// longer: a dead waiter should not delay the others for longer, and a lost ticket only costs its position.
func (w *waiter) draw(ctx context.Context, names []string) error {
	var last uint64
	for _, name := range names {
		if number, ok := numberOf(name); ok {
			last = max(last, number)
		}
	}
	if w.ticket != nil {
		giveUp(ctx, w.ticket) // it is lost
		w.ticket = nil
	}
	w.own = ticketName(last+1, w.mark)
	t := terms{Options: Options{TTL: min(w.opt.TTL, DefaultTTL), User: w.opt.User, Command: w.opt.Command, Batch: w.opt.Batch}, owner: w.opt.owner, onBehalf: w.opt.onBehalf}
	ticket, err := TryOnce(ctx, w.queue, w.own, t)
	if err != nil {
		return err
	}
	w.ticket, w.since, w.first = ticket, time.Now(), 0
	return nil
}

// rank finds the tickets ahead: the smaller ones, except leftovers of the waiter's own earlier attempts.
func (w *waiter) rank(names []string) {
	w.ahead, w.alone = w.ahead[:0], true
	for _, name := range names {
		_, ok := numberOf(name)
		mine := strings.HasSuffix(name, w.mark)
		if ok && !mine && name < w.own {
			w.ahead = append(w.ahead, name)
			continue
		}
		w.alone = w.alone && mine
	}
	slices.Sort(w.ahead)
	w.first = max(w.first, len(w.ahead))
	for name, one := range w.watched {
		if !slices.Contains(w.ahead, name) {
			_ = one.Close()
			delete(w.watched, name)
		}
	}
}

// watch inspects the ticket right ahead, and those before it as long as all between seem to be dead: so
// several stale tickets are watched at the same time. It drops the tickets that it skips, and returns when
// the next inspection is due.
func (w *waiter) watch(ctx context.Context) (next time.Duration, err error) {
	next, w.next = farNext, Observation{}
	for silent := 0; silent < len(w.ahead); {
		i := len(w.ahead) - 1 - silent
		one, err := w.lookAt(ctx, w.ahead[i])
		if err != nil {
			return 0, err
		}
		due := time.Until(one.at)
		if one.passed {
			w.ahead = slices.Delete(w.ahead, i, i+1)
			next = min(next, due)
			continue
		}
		if silent == 0 {
			w.next = one.seen
		}
		if one.seen.State == StateHeld {
			return next, nil
		}
		next = min(next, due)
		silent++
	}
	return next, nil
}

// lookAt inspects a ticket if that is due. A ticket that cannot be judged or removed is skipped: tickets
// only order the waiters.
func (w *waiter) lookAt(ctx context.Context, name string) (*watched, error) {
	one, err := w.watcher(ctx, name)
	if err != nil || time.Now().Before(one.at) {
		return one, err
	}
	one.passed, err = w.judge(ctx, name, one)
	switch {
	case err != nil && (ctx.Err() != nil || isRetryable(err)):
		one.at = time.Time{}
		return nil, err
	case err != nil:
		one.passed, one.at = true, time.Now().Add(nextGlance)
	}
	return one, nil
}

// watcher returns the observer of a ticket. It does not inspect a new ticket for a while, because most
// tickets are released soon.
func (w *waiter) watcher(ctx context.Context, name string) (*watched, error) {
	if one := w.watched[name]; one != nil {
		return one, nil
	}
	observer, err := observe(ctx, w.queue, name, w.opt.StalePolicy)
	if err != nil {
		return nil, err
	}
	one := &watched{Observer: observer, seen: Observation{State: StateHeld}, at: time.Now().Add(firstGlance)}
	w.watched[name] = one
	return one, nil
}

// judge inspects a ticket, removes it if its waiter is gone, and reports whether to skip it. It does not
// remove a ticket in an unknown format.
func (w *waiter) judge(ctx context.Context, name string, one *watched) (passed bool, err error) {
	one.seen, err = ask(ctx, one, one.Look)
	if err != nil {
		return false, w.leftHanging(name, err)
	}
	one.at = time.Now().Add(one.seen.Next)
	switch one.seen.State {
	case StateDead:
		return true, w.leftHanging(name, tell(ctx, one, one.Break))
	case StateFree:
		_, err := bounded.Call(ctx, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, w.queue.Tidy(ctx, name)
		})
		return true, err
	case StateHeld, StateSuspect:
	}
	return one.seen.Record.Foreign != "", nil
}

// leftHanging returns err. An observer that hangs is closed by the hanging call.
func (w *waiter) leftHanging(name string, err error) error {
	if errors.As(err, new(*hungError)) {
		delete(w.watched, name)
	}
	return err
}

const (
	// leaving bounds a release.
	leaving = 5 * time.Second
	// farBack is the number of tickets ahead above which pauses depend on how long turns take: each ticket
	// ahead takes a while, and only the next waiter has to notice at once when the lock is free. farthest
	// bounds such pauses: if all waiters ahead leave, the lock is idle until the next attempt.
	farBack  = 10
	farthest = time.Minute
	// patientFor bounds a pause, in multiples of the time waited so far.
	patientFor = 4
	// leastQueued is the shortest pause in a queue.
	leastQueued = 5 * time.Millisecond
	// firstGlance is the time before the first inspection of a ticket ahead, nextGlance the time before the
	// next one of a ticket that could not be judged. farNext is later than any inspection. A holder that
	// was alive is inspected after the next listing.
	firstGlance = time.Second
	nextGlance  = 5 * time.Second
	farNext     = time.Hour
)

// pace is how long to pause: half of the time until all tickets ahead have had their turns, if those take
// as long as the turns since this ticket was drawn. If it were more, waiters would oversleep their own
// turns after one long turn, which makes turns seem long to the waiters behind. For the same reason no
// pause is many times as long as the time waited: a waiter that draws its ticket during a long turn has
// seen no other.
func (w *waiter) pace() time.Duration {
	ahead := len(w.ahead)
	waited := time.Since(w.since)
	each := waited / time.Duration(max(w.first-ahead, 0)+1)
	near := w.opt.Poll * time.Duration(min(ahead, farBack))
	far := min(each*time.Duration(max(ahead-farBack, 0))/2, farthest)
	bound := min(each*time.Duration(ahead), patientFor*waited, max(near, far))
	return bound/3 + rand.N(bound/3+1) //nolint:gosec // jitter needs no secrecy
}

// forget ends all watches.
func (w *waiter) forget() {
	w.stop()
	for _, one := range w.watched {
		_ = one.Close()
	}
}

// explain adds what was ahead to the error, if ctx has ended.
func (w *waiter) explain(ctx context.Context, cause error) error {
	if ctx.Err() == nil || !errors.Is(cause, context.Cause(ctx)) || len(w.ahead) == 0 {
		return cause
	}
	return errors.Join(cause, &QueuedError{Name: w.name, Ahead: len(w.ahead), Next: w.next})
}
