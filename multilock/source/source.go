package source

import (
	"context"
	"time"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/process"
)

// Source is where locks are stored. Its methods make one attempt and never wait for other
// processes; they may block as long as the system behind them does. They are safe for concurrent
// use.
type Source interface {
	// Contend prepares to acquire the lock name. Before the first Try it creates nothing that other
	// processes could mistake for a held lock. The error is ErrInvalid for a name that the source
	// cannot hold.
	Contend(ctx context.Context, name string, claim Claim, policy StalePolicy) (Contender, error)
	// Observe prepares to inspect the lock name and, perhaps, to break it.
	Observe(ctx context.Context, name string, policy StalePolicy) (Observer, error)
	// Names lists the locks that are, or may be, held now, sorted.
	Names(ctx context.Context) ([]string, error)
}

// Observer watches one lock. It is for one goroutine.
type Observer interface {
	// Look takes one observation. Evidence of a holder's death may need several.
	Look(ctx context.Context) (Observation, error)
	// Break breaks exactly the lock that the last Look called Dead. The error is ErrHeld if it was
	// not called Dead, or has sent a heartbeat since; it is nil if that lock was removed meanwhile.
	// Breaking a lock does not acquire it.
	Break(ctx context.Context) error
	// Force breaks exactly the lock that the last Look saw, dead or alive. Unlike Break, it ignores
	// heartbeats since. It does not touch the lock of another acquisition; the error is nil then,
	// because the lock that was meant is gone.
	Force(ctx context.Context) error
	// Close ends the observation. It changes nothing.
	Close() error
}

// Contender makes attempts to acquire one lock. It is for one goroutine.
type Contender interface {
	Observer
	// Try makes one attempt. The error is ErrHeld if another process has the lock, ErrUnsure if the
	// outcome is unknown and the attempt could not be withdrawn; any other error means that the
	// lock was not acquired.
	Try(ctx context.Context) (Lease, error)
	// Wake returns a channel that receives a value when the lock may have become free; nil if the
	// source has no notifications. A caller must Try once more between its first call of Wake and
	// waiting for it.
	Wake() <-chan struct{}
}

// Lease is an acquired lock. Methods are safe for concurrent use.
type Lease interface {
	// Record is what other processes can read about the lock.
	Record() Record
	// Since is a moment before the first confirmed heartbeat, from which the validity counts.
	Since() boottime.Instant
	// Renew sends a heartbeat and verifies that the lease still holds the lock. The error is
	// ErrLost if it provably does not; any other error means unknown.
	Renew(ctx context.Context) error
	// Release frees the lock. The error is ErrLost if it was no longer held, ErrUnsure if it is
	// gone and it is unknown whether this call freed it, ErrReleased after that or a success; after
	// any other error it may be called again.
	Release(ctx context.Context) error
	// Fence returns a fencing token that is larger than all tokens of earlier holders of this name,
	// and verifies afterwards that the lock is still held. The error is ErrUnsupported if the
	// source has no fencing tokens.
	Fence(ctx context.Context) (uint64, error)
	// MarkJob records the process groups of the holder's jobs, MaxGroups at most, instead of those
	// that were recorded: while a process of one of them is alive, the holder counts as alive on
	// its own host. A group that is in the old and the new list is recorded at every moment.
	// Without groups it removes the mark: the jobs are over, and others may follow. The error is
	// ErrUnsupported if the source does not record groups.
	MarkJob(ctx context.Context, jobs ...process.Group) error
	// Close drops the lease without releasing the lock, which stays held until its TTL has passed.
	Close() error
}

// Paced is a Source that needs longer pauses between attempts than a filesystem, because it is a
// shared server.
type Paced interface {
	Source
	// Pace returns the shortest and the longest pause between two attempts of one waiter. The
	// waiter's own limit, if set, overrides it.
	Pace() (least, most time.Duration)
}

// Local is implemented by a Source, its contenders and its leases if some of them never wait for a server or
// another host. Those are called without a time limit, but for Look, Break, Force and Renew, which also use
// other files and programs. (A disk that does not answer blocks the end of the process in any case.)
type Local interface {
	// Local reports whether this one never waits. The answer never changes.
	Local() bool
}

// StalePolicy decides when a lock without heartbeats is stale.
type StalePolicy struct {
	// MaxAge is the time without a heartbeat after which a lock without a TTL of its own may be
	// broken (the format of the Python MultiLock, or an unreadable record); 0 means never. It can
	// prolong the TTL of a lock that has one, but not shorten it, because a holder relies on its
	// TTL.
	MaxAge time.Duration
	// Probe may prove a holder dead before its TTL has passed; nil disables it. Only locks
	// in a directory call it.
	Probe Probe
}
