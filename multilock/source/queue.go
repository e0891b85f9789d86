package source

import "context"

// Queueing is a Source with a queue of waiters for each lock.
type Queueing interface {
	Source
	// Queue returns the queue for the lock name. The error is ErrInvalid for a name that the source
	// cannot hold.
	Queue(name string) (Queue, error)
}

// Queue is a group of locks that are tickets. A waiter holds and renews its ticket, and a ticket is
// judged like any other lock. Tickets exclude nobody: they only determine the order of attempts.
type Queue interface {
	Group
	// Left subscribes to notifications that a ticket is gone, if the source has any: see
	// Group.Wake.
	Left(ticket string) (news <-chan struct{}, stop func())
	// Close frees the queue's resources. Tickets stay held until they are released.
	Close() error
}

// QueueLister is a Queueing source that can list its queues.
type QueueLister interface {
	Queueing
	// Queues lists, sorted, the locks whose queue has tickets, including those that a crash left.
	Queues(ctx context.Context) ([]string, error)
}
