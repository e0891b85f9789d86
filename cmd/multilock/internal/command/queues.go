package command

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/internal/parallel"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// foreseeTickets adds the tickets that would be deleted.
func (r *cleanReport) foreseeTickets(ctx context.Context, src *place.Source) error {
	queues, err := show.Queues(ctx, src, nil)
	for _, q := range queues {
		r.Tickets = append(r.Tickets, q.Abandoned()...)
	}
	return err
}

// clearTickets deletes the tickets of dead waiters. Live waiters pass over them, but without live waiters
// they would stay.
func (r *cleanReport) clearTickets(ctx context.Context, src *place.Source) error {
	lister, ok := source.Ability[source.QueueLister](src.Locks, source.TraitQueue)
	if !ok {
		return nil
	}
	names, err := lister.Queues(ctx)
	for _, name := range names {
		err = errors.Join(err, r.clearQueue(ctx, lister, name))
	}
	return err
}

func (r *cleanReport) clearQueue(ctx context.Context, src source.Queueing, name string) (err error) {
	queue, err := src.Queue(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, queue.Close()) }()
	tickets, err := queue.Names(ctx)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	_ = parallel.Do(parallel.Requests, len(tickets), func(i int) error {
		seen, failed := multilock.Break(ctx, queue, tickets[i], multilock.BreakOptions{})
		if failed == nil || errors.Is(failed, multilock.ErrFree) {
			failed = errors.Join(failed, queue.Tidy(ctx, tickets[i]))
		}
		mu.Lock()
		defer mu.Unlock()
		err = errors.Join(err, r.addTicket(name, tickets[i], seen, failed))
		return nil
	})
	_, failed := queue.Empty(ctx) // this removes an empty queue
	return errors.Join(err, failed)
}

func (r *cleanReport) addTicket(queue, ticket string, seen multilock.Observation, err error) error {
	switch {
	case err == nil:
		l := show.LockOf(ticket, seen)
		l.Queue = queue
		r.Tickets = append(r.Tickets, l)
	case errors.Is(err, multilock.ErrHeld), errors.Is(err, multilock.ErrFree):
	default:
		r.Errors = append(r.Errors, err.Error())
		return err
	}
	return nil
}

// examineQueues finds tickets whose waiters seem to be dead.
func (r *DoctorReport) examineQueues(ctx context.Context, src *place.Source) {
	queues, err := show.Queues(ctx, src, nil)
	if err != nil {
		r.Findings = append(r.Findings, source.Warning("queue", show.Explain(err), ""))
	}
	for _, q := range queues {
		abandoned := q.Abandoned()
		if len(abandoned) == 0 {
			continue
		}
		r.Findings = append(r.Findings, source.Warning("queue",
			fmt.Sprintf("%d waiters in the queue for lock %s seem to be dead, such as %s (%s)", len(abandoned), console.Label(q.Name), abandoned[0].Holder(), abandoned[0].Why),
			"other waiters pass them once that is certain; to remove them: "+src.Place.Command("clean")))
	}
}
