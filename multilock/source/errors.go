package source

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

var (
	// ErrHeld says that somebody holds the lock. The error in which it is
	// wrapped is a *HeldError wherever the holder is known.
	ErrHeld = errors.New("lock is held")
	// ErrSilent is an ErrHeld of Try which has also seen that the holder's signs of life
	// have ended. A waiter looks at once then, and not when the last look thought.
	ErrSilent = fmt.Errorf("%w, and gives no signs of life any more", ErrHeld)
	// ErrFree says that nobody holds the lock.
	ErrFree = errors.New("lock is free")
	// ErrLost says that this holder does not hold the lock any more, though it
	// did not release it: it was broken, or was silent for too long.
	ErrLost = errors.New("lock is lost")
	// ErrReleased says that the lock was released through this value before.
	ErrReleased = errors.New("lock was released")
	// ErrUnsure says that the source was asked and cannot tell. The lock may be
	// held, also by the caller; if so it is freed by its TTL.
	ErrUnsure = errors.New("cannot tell who holds the lock")
	// ErrPassing says that the source could not do its part just now, for a reason that
	// may pass by itself: a server that does not answer, a full disk, a mount that is
	// read-only for a moment. Authors of sources wrap it, or set OpError.Passing, in errors
	// of Contend, Try, Look and Break that leave nothing in doubt; Acquire then goes on.
	ErrPassing = errors.New("may pass by itself")
	// ErrUnsupported says that the source does not have this ability.
	ErrUnsupported = errors.New("not supported by this lock source")
	// ErrInvalid says that the call cannot succeed as it is: a bad name, bad
	// options, or a place that cannot hold locks. Nothing was created or lost.
	ErrInvalid = errors.New("invalid")
)

// LostError says why a holder does not hold its lock any more.
type LostError struct {
	Name string
	// Silence is the time since the last sign of life that the source confirmed,
	// on a clock that counts suspend.
	Silence time.Duration
	// Err is what the source said, nil if the silence alone decided.
	Err error
}

func (e *LostError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("lock %q is lost: %v", e.Name, e.Err)
	}
	return fmt.Sprintf("lock %q is lost: no renewal was confirmed for %s", e.Name, e.Silence.Round(time.Millisecond))
}

// Unwrap gives the source's own error.
func (e *LostError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrLost) true.
func (e *LostError) Is(target error) bool { return target == ErrLost }

// OpError says in which step of a source's protocol an error came up.
type OpError struct {
	Source string // "fslock", ...
	Op     string // the step: "stage", "rename", "read back", ...
	Name   string // the lock's name, "" if none is concerned
	Err    error
	// Hint tells a person what to do about it, "" if there is nothing to tell.
	Hint string
	// Passing makes errors.Is(err, ErrPassing) true.
	Passing bool
}

// Is says whether the error may pass by itself.
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

// Unwrap gives the cause.
func (e *OpError) Unwrap() error { return e.Err }

// InvalidError says what cannot be used as it is, and what to do about it.
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

// Unwrap gives the cause.
func (e *InvalidError) Unwrap() error { return e.Err }
