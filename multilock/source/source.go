package source

import (
	"context"
	"time"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/process"
)

// Source is a place where locks live. Its methods make one attempt and never
// wait for anybody; they may block as long as the system behind them does.
// All of them are safe for concurrent use.
type Source interface {
	// Contend prepares to take the lock name. Nothing that others could mistake for a
	// held lock exists before the first Try. The error is ErrInvalid for a name
	// that the source cannot hold.
	Contend(ctx context.Context, name string, claim Claim, policy StalePolicy) (Contender, error)
	// Observe prepares to look at the lock name and, perhaps, to break it.
	Observe(ctx context.Context, name string, policy StalePolicy) (Observer, error)
	// Names lists the locks that are, or may be, held now, sorted.
	Names(ctx context.Context) ([]string, error)
}

// Observer watches one lock. It is for one goroutine.
type Observer interface {
	// Look takes one sample. Dead evidence that needs time builds up over several.
	Look(ctx context.Context) (Sighting, error)
	// Break breaks the very lock that the last Look called Dead, and no other. The
	// error is ErrHeld if that is not, or is no longer, so; it is nil as well if
	// that lock went away meanwhile. Breaking gives no ownership.
	Break(ctx context.Context) error
	// Force breaks the very lock that the last Look saw, dead or alive. Signs of life of
	// its holder in between do not stop it, as they stop Break; the lock of another
	// acquisition stays, and the error is nil then: the one that was meant is gone.
	Force(ctx context.Context) error
	// Close ends the watch. It changes nothing.
	Close() error
}

// Contender is one contender's standing attempt at one lock. It is for one goroutine.
type Contender interface {
	Observer
	// Try makes one attempt. The error is ErrHeld if somebody else has the lock,
	// ErrUnsure if the outcome cannot be learned and the attempt could not be taken
	// back; any other error means that the lock was not acquired.
	Try(ctx context.Context) (Lease, error)
	// Wake returns a channel on which a value arrives when the lock may have become
	// free, as far as this source can tell without asking; nil if it cannot. A
	// caller must Try once more between its first call of Wake and waiting for it.
	Wake() <-chan struct{}
}

// Lease is an acquired lock as the source sees it. Methods are safe for
// concurrent use.
type Lease interface {
	// Record is what others can read about the lock.
	Record() Record
	// Since is the moment before the first confirmed sign of life: silence counts from it.
	Since() boottime.Instant
	// Renew gives a sign of life and verifies that the lock is still this one. The
	// error is ErrLost if it provably is not; any other error means unknown.
	Renew(ctx context.Context) error
	// Release frees the lock. The error is ErrLost if it was not held any more,
	// ErrUnsure if it is gone and nobody can tell whether this very call freed it,
	// ErrReleased after that or a success; after any other error it may be called again.
	Release(ctx context.Context) error
	// Fence returns a number that is larger than any other that an earlier holder of
	// this name was given, and verifies afterwards that the lock is still held.
	// The error is ErrUnsupported if the source has no such numbers.
	Fence(ctx context.Context) (uint64, error)
	// MarkJob records the process groups of the holder's jobs, MaxGroups at most, in the
	// place of those that it had recorded: while a process of one of them lives, the holder
	// counts as alive on its own host. What lives is recorded at every moment if it was
	// before. No group takes that back: the jobs are over, and others may follow. The error
	// is ErrUnsupported if the source keeps no such mark.
	MarkJob(ctx context.Context, jobs ...process.Group) error
	// Close gives up the lease without releasing the lock, which stays held until
	// its TTL has passed.
	Close() error
}

// Paced is a Source that wants attempts to be rarer than a file system needs them
// to be: behind it is a server that others use, too.
type Paced interface {
	Source
	// Pace is the shortest and the longest pause between two attempts of one waiter.
	// The waiter's own limit, where it is given, takes its place.
	Pace() (least, most time.Duration)
}

// StalePolicy decides when the lock of a silent holder is stale.
type StalePolicy struct {
	// MaxAge is the silence after which a lock without a TTL of its own may be
	// broken (the format of the Python MultiLock, or bytes that cannot be
	// understood); 0 means never. For a lock that has a TTL it can only prolong
	// that: a holder trusts its TTL.
	MaxAge time.Duration
	// Probe may prove a holder dead before its TTL has passed; nil asks nobody. A source
	// that does not say so (Probing) never asks.
	Probe Probe
}

// Probing is a Source whose observers ask a StalePolicy's Probe.
type Probing interface {
	Source
	// Probes does nothing: it says that they do.
	Probes()
}
