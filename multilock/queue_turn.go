package multilock

import (
	"context"
	"errors"
)

// errPassedOver means that the ticket was lost during the acquisition.
var errPassedOver = errors.New("the place in the queue was lost")

// InTurn calls acquire, which acquires the lock name, or one of several locks that share its queue. With
// Options.Fair it first queues for the lock name, calls acquire when it is first, and leaves the queue when
// acquire returns. The Terms that acquire gets are t without Fair.
//
// The context of acquire also ends when the position in the queue is lost, which happens if this process
// stops for the TTL of its ticket. InTurn then queues again, at the end: the process that is now first
// makes so many attempts that a process outside of the queue might never find the lock free. Errors are
// those of Enqueue and of acquire.
func InTurn[T any](ctx context.Context, src Source, name string, t Terms, acquire func(context.Context, Terms) (T, error)) (T, error) {
	return inTurn(ctx, src, name, t.terms(), func(ctx context.Context, t terms) (T, error) { return acquire(ctx, t) })
}

func inTurn[T any](ctx context.Context, src Source, name string, t terms, acquire func(context.Context, terms) (T, error)) (T, error) {
	if !t.Fair {
		return acquire(ctx, t)
	}
	for {
		got, err := oneTurn(ctx, src, name, t, acquire)
		if !errors.Is(err, errPassedOver) {
			return got, err
		}
	}
}

func oneTurn[T any](ctx context.Context, src Source, name string, t terms, acquire func(context.Context, terms) (T, error)) (none T, err error) {
	place, err := Enqueue(ctx, src, name, t)
	if err != nil {
		return none, err
	}
	defer place.Leave()
	first, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(place.ticket.Context(), func() { cancel(errPassedOver) })
	defer stop()
	t.Fair = false
	return acquire(first, t)
}
