package multilock

import (
	"fmt"

	"github.com/multilock/go/multilock/source"
)

// Names from package source that users of a lock need.
type (
	// Source stores locks; package fslock has one on a shared filesystem.
	Source = source.Source
	// Holder is the holder of a lock.
	Holder = source.Holder
	// Observation is the result of inspecting a lock. For its fields see source.Observation.
	Observation = source.Observation
	// StalePolicy decides when the lock of a holder without heartbeats is stale.
	StalePolicy = source.StalePolicy
	// Result is how the job of a name ended. For its fields see source.Result.
	Result = source.Result
	// LostError explains why a holder has lost its lock.
	LostError = source.LostError
)

// The states in which a Observation shows a lock.
const (
	StateFree    = source.StateFree    // no process holds it
	StateHeld    = source.StateHeld    // its holder counts as alive
	StateSuspect = source.StateSuspect // its holder has sent no heartbeat for too long, and is being watched
	StateDead    = source.StateDead    // its holder is proven dead
)

// The errors of this package, and of its sources.
var (
	// ErrHeld means that another process holds the lock. If the holder is known, the error is a *HeldError.
	ErrHeld = source.ErrHeld
	// ErrFree means that no process holds the lock.
	ErrFree = source.ErrFree
	// ErrLost means that the holder has lost the lock without releasing it. The error is a *LostError.
	ErrLost = source.ErrLost
	// ErrReleased means that the lock was released before, through this value.
	ErrReleased = source.ErrReleased
	// ErrUnsure means that the outcome is unknown. The lock may be held, even by the caller; it is then
	// free after its TTL.
	ErrUnsure = source.ErrUnsure
	// ErrPassing means that the source failed for a reason that may be temporary. Acquire retries.
	ErrPassing = source.ErrPassing
	// ErrUnsupported means that the source does not support the call.
	ErrUnsupported = source.ErrUnsupported
	// ErrInvalid means that the call cannot succeed: a bad name, bad options, or a place that cannot hold
	// locks. Nothing was created or lost.
	ErrInvalid = source.ErrInvalid
	// ErrNoResult means that a name has no committed result.
	ErrNoResult = source.ErrNoResult
	// ErrOver means that the fixed time of a timed lock is over. It is the cause of the *LostError with
	// which such a lock ends.
	ErrOver = source.ErrOver
)

// HeldError names the holder of a lock (Observation.Record.Holder), since when it holds the lock, and why it
// counts as alive.
type HeldError struct {
	Name        string
	Observation Observation
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("lock %q is held by %s: %s", e.Name, e.Observation.Record.Holder, e.Observation.Why)
}

// Is makes errors.Is(err, ErrHeld) true.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }
