package remote

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/multilock/go/multilock/source"
)

// OpError wraps the error of a step; it returns nil without an error. source.ErrInvalid is not
// wrapped. If the caller's context has ended, its cause is added.
func OpError(ctx context.Context, e source.OpError) error {
	if e.Err == nil || errors.Is(e.Err, source.ErrInvalid) {
		return e.Err
	}
	if over := context.Cause(ctx); over != nil && !errors.Is(e.Err, over) {
		e.Err = fmt.Errorf("%w: %w", over, e.Err)
	}
	return &e
}

// Unreachable is the error of a driver that found no server, in one line for users.
type Unreachable struct {
	Ways string // the addresses, with the error of each
	Err  error
}

func (u *Unreachable) Error() string { return "no server to talk to: " + u.Ways }

// Unwrap returns the cause.
func (u *Unreachable) Unwrap() error { return u.Err }

// Grace is how long a request may outlive its caller's context. Nearly every pending request
// completes in that time, so that its outcome is known; the core waits for a second.
const Grace = 700 * time.Millisecond

// Outlive returns the context of a request with a time limit. The end of ctx cancels it only after
// Grace.
func Outlive(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(Grace, cancel) })
	return own, func() {
		stop()
		cancel()
	}
}

// RenewalLimit is the time limit of a heartbeat: long enough for a busy server or host, and short
// enough that the next one can be tried on another connection while the lock is still valid.
func RenewalLimit(ttl time.Duration) time.Duration { return max(ttl/4, time.Second) }

// Timeout returns the time limit of an operation: the given one, or the usual one for 0.
func Timeout(given, usual time.Duration) (time.Duration, error) {
	switch {
	case given < 0:
		return 0, &source.InvalidError{What: "timeout", Got: given.String(), Why: "must be positive"}
	case given == 0:
		return usual, nil
	}
	return given, nil
}
