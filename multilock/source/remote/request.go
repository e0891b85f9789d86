package remote

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/multilock/go/multilock/source"
)

// OpError is the error of a step, nil if e has none. What is invalid says so itself. If the
// caller's time was over, that is a cause, too.
func OpError(ctx context.Context, e source.OpError) error {
	if e.Err == nil || errors.Is(e.Err, source.ErrInvalid) {
		return e.Err
	}
	if over := context.Cause(ctx); over != nil && !errors.Is(e.Err, over) {
		e.Err = fmt.Errorf("%w: %w", over, e.Err)
	}
	return &e
}

// Unreachable is an error of a driver that found no server, in one line for people.
type Unreachable struct {
	Ways string // in which it was tried, and what came of each
	Err  error
}

func (u *Unreachable) Error() string { return "no server to talk to: " + u.Ways }

// Unwrap gives the cause.
func (u *Unreachable) Unwrap() error { return u.Err }

// Grace is how much longer than its caller a request may live. Nearly every one that is under way
// comes back in that time, and its outcome is known then; the core waits a second.
const Grace = 700 * time.Millisecond

// Outlive gives a request its time. The end of ctx does not cut it off at once.
func Outlive(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(Grace, cancel) })
	return own, func() {
		stop()
		cancel()
	}
}

// RenewalLimit is what a heartbeat is given: long enough for a busy server or host, and so
// short that the next one can be tried on another connection before the tenure is over.
func RenewalLimit(ttl time.Duration) time.Duration { return max(ttl/4, time.Second) }

// Timeout is what an operation may take: the given time, or the usual one for 0.
func Timeout(given, usual time.Duration) (time.Duration, error) {
	switch {
	case given < 0:
		return 0, &source.InvalidError{What: "timeout", Got: given.String(), Why: "must be positive"}
	case given == 0:
		return usual, nil
	}
	return given, nil
}
