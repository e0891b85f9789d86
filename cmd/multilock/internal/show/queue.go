package show

import (
	"context"
	"errors"
	"fmt"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// Queue is the queue for a lock.
type Queue struct {
	Name    string `json:"name"`    // of the lock
	Waiting int    `json:"waiting"` // tickets, including those of dead waiters
	// Tickets are the first of them, in order. Suspect and dead tickets are skipped.
	Tickets []Lock `json:"tickets"`
}

// maxTickets bounds how many tickets of a queue are inspected.
const maxTickets = 100

// Queues reads the queues for the named locks, or all queues of the group.
func Queues(ctx context.Context, src *place.Source, names []string) ([]Queue, error) {
	lister, ok := source.Ability[source.QueueLister](src.Locks, source.TraitQueue)
	if !ok {
		return nil, nil
	}
	if len(names) == 0 {
		found, err := lister.Queues(ctx)
		if err != nil {
			return nil, err
		}
		names = found
	}
	var queues []Queue
	for _, name := range names {
		q, err := inspectQueue(ctx, lister, name)
		if err != nil {
			return queues, err
		}
		if q.Waiting > 0 {
			queues = append(queues, q)
		}
	}
	return queues, nil
}

func inspectQueue(ctx context.Context, src source.Queueing, name string) (q Queue, err error) {
	queue, err := src.Queue(name)
	if err != nil {
		return q, err
	}
	defer func() { err = errors.Join(err, queue.Close()) }()
	tickets, err := queue.Names(ctx)
	if err != nil {
		return q, err
	}
	inspector := multilock.NewInspector(queue, multilock.StalePolicy{})
	defer func() { err = errors.Join(err, inspector.Close()) }()
	q = Queue{Name: name, Waiting: len(tickets), Tickets: make([]Lock, min(len(tickets), maxTickets))}
	InParallel(len(q.Tickets), func(i int) {
		q.Tickets[i] = inspectOne(ctx, queue, tickets[i], inspector)
		q.Tickets[i].Queue = name
	})
	return q, nil
}

// Abandoned returns the tickets whose waiters seem to be gone.
func (q Queue) Abandoned() (tickets []Lock) {
	for _, l := range q.Tickets {
		if l.State == multilock.StateDead.String() || l.State == multilock.StateSuspect.String() {
			tickets = append(tickets, l)
		}
	}
	return tickets
}

// Sentence describes how many processes wait, and which waiter is next.
func (q Queue) Sentence() string {
	abandoned := len(q.Abandoned())
	text := fmt.Sprintf("queued for %s: %d", console.Label(q.Name), q.Waiting-abandoned) + Some(abandoned, "dead or without heartbeat")
	for _, l := range q.Tickets {
		if l.State == multilock.StateHeld.String() {
			return text + fmt.Sprintf("; first is %s, for %s", l.Holder(), Ago(l.Age))
		}
	}
	return text
}
