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

// foreseeTickets says which places in queues would be given up.
func (r *cleanReport) foreseeTickets(ctx context.Context, src *place.Source) error {
	queues, err := show.Queues(ctx, src, nil)
	for _, q := range queues {
		r.Tickets = append(r.Tickets, q.Abandoned()...)
	}
	return err
}

// clearTickets removes what the dead have left of their places in queues. Who waits passes
// over them, but where nobody waits any more they would stay.
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
	_, failed := queue.Vacant(ctx) // an empty one goes
	return errors.Join(err, failed)
}

func (r *cleanReport) addTicket(queue, ticket string, seen multilock.Sighting, err error) error {
	switch {
	case err == nil:
		l := show.LockOf(ticket, seen)
		l.Queue = queue
		r.Tickets = append(r.Tickets, l)
	case errors.Is(err, multilock.ErrHeld), errors.Is(err, multilock.ErrFree):
	default:
		r.Failed = append(r.Failed, err.Error())
		return err
	}
	return nil
}

// examineQueues finds places in queues whose waiters seem to be dead.
func (r *DoctorReport) examineQueues(ctx context.Context, src *place.Source) {
	queues, err := show.Queues(ctx, src, nil)
	if err != nil {
		r.Findings = append(r.Findings, source.Finding{Subject: "queue", Severity: source.SeverityWarning, Text: show.Explain(err)})
	}
	for _, q := range queues {
		abandoned := q.Abandoned()
		if len(abandoned) == 0 {
			continue
		}
		r.Findings = append(r.Findings, source.Finding{
			Subject: "queue", Severity: source.SeverityWarning,
			Text:   fmt.Sprintf("in the line for lock %s are %d places whose waiters seem to be dead, such as %s (%s)", console.Label(q.Name), len(abandoned), abandoned[0].Holder(), abandoned[0].Why),
			Advice: "who waits passes over them, once that is sure; to remove them: " + src.Place.Command("clean"),
		})
	}
}
