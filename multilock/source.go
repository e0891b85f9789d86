package multilock

import (
	"fmt"

	"github.com/multilock/go/multilock/source"
)

// What a user of a lock names of what its source says. Package source has it all.
type (
	// Source is a place where locks live; package fslock has one on a shared filesystem.
	Source = source.Source
	// Holder says who holds a lock.
	Holder = source.Holder
	// Sighting is what one look at a lock showed.
	Sighting = source.Sighting
	// StalePolicy decides when the lock of a silent holder is stale.
	StalePolicy = source.StalePolicy
	// Result is how the job of a name ended.
	Result = source.Result
	// LostError says why a holder does not hold its lock any more.
	LostError = source.LostError
)

// The states in which a Sighting shows a lock.
const (
	StateFree    = source.StateFree    // nobody holds it
	StateHeld    = source.StateHeld    // somebody holds it and counts as alive
	StateSuspect = source.StateSuspect // its holder has been silent for too long, and is being watched
	StateDead    = source.StateDead    // the evidence for its holder's death is complete
)

// The errors of this package, and of its sources.
var (
	// ErrHeld says that somebody holds the lock. The error in which it is
	// wrapped is a *HeldError wherever the holder is known.
	ErrHeld = source.ErrHeld
	// ErrFree says that nobody holds the lock.
	ErrFree = source.ErrFree
	// ErrLost says that this holder does not hold the lock any more, though it did
	// not release it. The error in which it is wrapped is a *LostError.
	ErrLost = source.ErrLost
	// ErrReleased says that the lock was released through this value before.
	ErrReleased = source.ErrReleased
	// ErrUnsure says that the source was asked and cannot tell. The lock may be
	// held, also by the caller; if so it is freed by its TTL.
	ErrUnsure = source.ErrUnsure
	// ErrPassing says that the source could not do its part just now, for a reason that
	// may pass by itself. Acquire goes on.
	ErrPassing = source.ErrPassing
	// ErrUnsupported says that the source does not have this ability.
	ErrUnsupported = source.ErrUnsupported
	// ErrInvalid says that the call cannot succeed as it is: a bad name, bad
	// options, or a place that cannot hold locks. Nothing was created or lost.
	ErrInvalid = source.ErrInvalid
	// ErrNoResult says that no result was committed under a name.
	ErrNoResult = source.ErrNoResult
	// ErrOver says that the time for which a lock was given is over, as it was fixed
	// when it was acquired: the cause of the *LostError with which a timed lock ends.
	ErrOver = source.ErrOver
)

// HeldError says who holds a lock, since when, and why that counts as alive.
type HeldError struct {
	Name     string
	Sighting Sighting
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("lock %q is held by %s: %s", e.Name, e.Sighting.Record.Holder, e.Sighting.Why)
}

// Is makes errors.Is(err, ErrHeld) true.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }
