package multilock

import (
	"fmt"

	"github.com/multilock/go/multilock/source"
)

// Names from package source that users of a lock need.
type (
	// Source is a place where locks live; package fslock has one on a shared filesystem.
	Source = source.Source
	// Holder is the holder of a lock.
	Holder = source.Holder
	// Sighting is what an inspection of a lock showed. For its fields see source.Sighting.
	Sighting = source.Sighting
	// StalePolicy decides when the lock of a silent holder is stale.
	StalePolicy = source.StalePolicy
	// Result is how the job of a name ended. For its fields see source.Result.
	Result = source.Result
	// LostError says why a holder has lost its lock.
	LostError = source.LostError
)

// The states in which a Sighting shows a lock.
const (
	StateFree    = source.StateFree    // no process holds it
	StateHeld    = source.StateHeld    // its holder counts as alive
	StateSuspect = source.StateSuspect // its holder has sent no heartbeat for too long, and is being watched
	StateDead    = source.StateDead    // its holder is proven dead
)

// The errors of this package, and of its sources.
var (
	// ErrHeld says that another process holds the lock. Where the holder is known, it is
	// wrapped in a *HeldError.
	ErrHeld = source.ErrHeld
	// ErrFree says that no process holds the lock.
	ErrFree = source.ErrFree
	// ErrLost says that the holder has lost the lock without releasing it. It is wrapped in a
	// *LostError.
	ErrLost = source.ErrLost
	// ErrReleased says that the lock was released before, through this value.
	ErrReleased = source.ErrReleased
	// ErrUnsure says that the outcome is not known. The lock may be held, also by the caller;
	// then its TTL frees it.
	ErrUnsure = source.ErrUnsure
	// ErrPassing says that the source failed for a reason that may pass by itself. Acquire
	// retries.
	ErrPassing = source.ErrPassing
	// ErrUnsupported says that the source does not support the call.
	ErrUnsupported = source.ErrUnsupported
	// ErrInvalid says that the call cannot succeed: a bad name, bad options, or a place that
	// cannot hold locks. Nothing was created or lost.
	ErrInvalid = source.ErrInvalid
	// ErrNoResult says that a name has no committed result.
	ErrNoResult = source.ErrNoResult
	// ErrOver says that the fixed time of a timed lock is over. It is the cause of the
	// *LostError with which such a lock ends.
	ErrOver = source.ErrOver
)

// HeldError names the holder of a lock (Sighting.Record.Holder), since when it holds it, and why it
// counts as alive.
type HeldError struct {
	Name     string
	Sighting Sighting
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("lock %q is held by %s: %s", e.Name, e.Sighting.Record.Holder, e.Sighting.Why)
}

// Is makes errors.Is(err, ErrHeld) true.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }
