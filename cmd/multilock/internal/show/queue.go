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

// Queue is the line for a lock.
type Queue struct {
	Name    string `json:"name"`    // of the lock
	Waiting int    `json:"waiting"` // tickets, those of the dead included
	// Tickets are the first of them, in their order. The silent and the dead are passed over.
	Tickets []Lock `json:"tickets"`
}

// maxTickets is how many of a queue are looked at.
const maxTickets = 100

// Queues looks at the queues of a group; those of the names, if there are any.
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
		q, err := lookAtQueue(ctx, lister, name)
		if err != nil {
			return queues, err
		}
		if q.Waiting > 0 {
			queues = append(queues, q)
		}
	}
	return queues, nil
}

func lookAtQueue(ctx context.Context, src source.Queueing, name string) (q Queue, err error) {
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
		q.Tickets[i] = lookAtOne(ctx, queue, tickets[i], inspector)
		q.Tickets[i].Queue = name
	})
	return q, nil
}

// Abandoned are the tickets with which nobody seems to wait any more.
func (q Queue) Abandoned() (tickets []Lock) {
	for _, l := range q.Tickets {
		if l.State == multilock.StateDead.String() || l.State == multilock.StateSuspect.String() {
			tickets = append(tickets, l)
		}
	}
	return tickets
}

// Sentence says how many wait, and whose turn it is.
func (q Queue) Sentence() string {
	abandoned := len(q.Abandoned())
	text := fmt.Sprintf("in line for %s: %d", console.Label(q.Name), q.Waiting-abandoned) + Some(abandoned, "dead or silent")
	for _, l := range q.Tickets {
		if l.State == multilock.StateHeld.String() {
			return text + fmt.Sprintf("; first is %s, for %s", l.Holder(), Ago(l.Age))
		}
	}
	return text
}
