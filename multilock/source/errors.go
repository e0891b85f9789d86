package source

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

var (
	// ErrHeld means that another process holds the lock. It is wrapped in a *HeldError where the
	// holder is known.
	ErrHeld = errors.New("lock is held")
	// ErrSilent is an ErrHeld of Try which has also seen that the holder's heartbeats have ended. A
	// waiter inspects the lock at once then, without waiting for Observation.Next.
	ErrSilent = fmt.Errorf("%w, and no longer sends heartbeats", ErrHeld)
	// ErrFree means that no process holds the lock.
	ErrFree = errors.New("lock is free")
	// ErrLost means that the lock is no longer held, though its holder did not release it: it was
	// broken, or not renewed in time.
	ErrLost = errors.New("lock is lost")
	// ErrReleased means that the lock was already released.
	ErrReleased = errors.New("lock was released")
	// ErrUnsure means that the outcome of a request is unknown. The lock may be held, also by the
	// caller; then it expires after its TTL.
	ErrUnsure = errors.New("the lock's holder is not known")
	// ErrPassing means that the source failed for a reason that may be temporary: a server that
	// does not answer, a full disk, a mount that is read-only for a moment. Authors of sources wrap
	// it, or set OpError.Passing, in errors of Contend, Try, Look and Break whose outcome is known;
	// Acquire then retries.
	ErrPassing = errors.New("may pass by itself")
	// ErrUnsupported means that the source does not have this ability.
	ErrUnsupported = errors.New("not supported by this lock source")
	// ErrInvalid means that the call cannot succeed: a bad name, bad options, or a location that
	// cannot hold locks. Nothing was created or lost.
	ErrInvalid = errors.New("invalid")
)

// LostError is why a holder lost its lock.
type LostError struct {
	Name string
	// Silence is the time since the last heartbeat that the source confirmed,
	// on a clock that counts suspend.
	Silence time.Duration
	// Err is the source's error, nil if only Silence decided.
	Err error
}

func (e *LostError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("lock %q is lost: %v", e.Name, e.Err)
	}
	return fmt.Sprintf("lock %q is lost: no renewal was confirmed for %s", e.Name, e.Silence.Round(time.Millisecond))
}

// Unwrap returns the source's error.
func (e *LostError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrLost) true.
func (e *LostError) Is(target error) bool { return target == ErrLost }

// OpError names the step of a source's protocol that failed.
type OpError struct {
	Source string // "fslock", ...
	Op     string // the step: "stage", "rename", "read back", ...
	Name   string // the lock's name, "" if none is concerned
	Err    error
	// Hint is advice for users, "" if there is none.
	Hint string
	// Passing makes errors.Is(err, ErrPassing) true.
	Passing bool
}

// Is reports whether the error may be temporary.
func (e *OpError) Is(target error) bool { return target == ErrPassing && e.Passing }

func (e *OpError) Error() string {
	var b strings.Builder
	b.WriteString(e.Source + ": ")
	if e.Name != "" {
		fmt.Fprintf(&b, "lock %q: ", e.Name)
	}
	fmt.Fprintf(&b, "%s: %v", e.Op, e.Err)
	if e.Hint != "" {
		b.WriteString(" (" + e.Hint + ")")
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *OpError) Unwrap() error { return e.Err }

// InvalidError is why a value cannot be used, and what to do about it.
type InvalidError struct {
	What string // "lock name", "ttl", "base directory", ...
	Got  string
	Why  string
	Err  error // the cause, if there is one
}

func (e *InvalidError) Error() string {
	return fmt.Sprintf("%s %q: %s", e.What, e.Got, e.Why)
}

// Is makes errors.Is(err, ErrInvalid) true.
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }

// Unwrap returns the cause.
func (e *InvalidError) Unwrap() error { return e.Err }
