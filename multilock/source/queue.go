package source

import "context"

// Queueing is a Source in which those who wait for a lock can stand in line.
type Queueing interface {
	Source
	// Queue is the line for the lock name. The error is ErrInvalid for a name that the
	// source cannot hold.
	Queue(name string) (Queue, error)
}

// Queue is a group of locks that are tickets: each is held, and renewed, by one who waits,
// and judged like any other lock. They exclude nobody: a ticket only says who is to ask
// for the lock first.
type Queue interface {
	Group
	// Left subscribes to the news that a ticket is gone, as far as this source hears of it
	// without asking: see Group.Wake.
	Left(ticket string) (news <-chan struct{}, stop func())
	// Close frees what the queue uses. Tickets stay held until they are released.
	Close() error
}

// QueueLister is a source with queues that tells for which locks there are any.
type QueueLister interface {
	Queueing
	// Queues names the locks for which somebody stands in line, or did before a crash,
	// sorted.
	Queues(ctx context.Context) ([]string, error)
}
