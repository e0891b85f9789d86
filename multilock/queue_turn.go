package multilock

import (
	"context"
	"errors"
)

// errPassedOver says that the place in the queue was lost while the lock was asked for.
var errPassedOver = errors.New("the place in the queue was lost")

// InTurn stands in line for the lock name, and calls ask when nobody is ahead: that takes the
// lock, or one of several for which there is one line. It leaves the line when ask returns.
//
// The context of ask also ends when the place is lost, as it is if this process stood still for
// the TTL of its ticket. Then others came first, and whoever is first of them now asks so much more
// often that one without a place may never find the lock free: so InTurn stands in line anew,
// at its end. Errors are those of Queue and of ask.
func InTurn[T any](ctx context.Context, src Source, name string, opt Options, ask func(context.Context) (T, error)) (T, error) {
	for {
		got, err := oneTurn(ctx, src, name, opt, ask)
		if !errors.Is(err, errPassedOver) {
			return got, err
		}
	}
}

func oneTurn[T any](ctx context.Context, src Source, name string, opt Options, ask func(context.Context) (T, error)) (none T, err error) {
	place, err := Queue(ctx, src, name, opt)
	if err != nil {
		return none, err
	}
	defer place.Leave()
	first, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(place.ticket.Context(), func() { cancel(errPassedOver) })
	defer stop()
	return ask(first)
}
