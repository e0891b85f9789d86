package multilock

import (
	"context"
	"errors"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock/source"
)

// hungError means that a call into a source had not returned when its context ended. On a hard NFS mount a
// system call can hang, uninterruptibly, for as long as the server is down.
type hungError struct{ cause error }

func (e *hungError) Error() string { return e.cause.Error() + ", while the lock source did not answer" }
func (e *hungError) Unwrap() error { return e.cause }

// within calls f, and returns soon after ctx ends even if f hangs. In that case it passes the eventual
// result of f to late, which undoes it. A call of something local cannot hang; nil is not local.
func within[T any](ctx context.Context, of any, f func() (T, error), late func(T, error)) (T, error) {
	if local(of) {
		return f()
	}
	value, hung, err := bounded.Within(ctx, bounded.Settling, f, late)
	if hung {
		err = &hungError{err}
	}
	return value, err
}

// local reports whether calls cannot hang. They need no goroutine of their own, which costs as much as they do.
func local(of any) bool {
	l, ok := of.(source.Local)
	return ok && l.Local()
}

// ask calls f, a method of the observer o, like within. If f hangs, o is closed when f returns, because an
// observer is for one goroutine.
func ask[T any](ctx context.Context, o source.Observer, f func(context.Context) (T, error)) (T, error) {
	return within(ctx, nil, func() (T, error) { return f(ctx) }, func(T, error) { _ = o.Close() })
}

// tell is ask for a method that only returns an error.
func tell(ctx context.Context, o source.Observer, f func(context.Context) error) error {
	_, err := ask(ctx, o, func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx) })
	return err
}

// discard closes an observer that came too late.
func discard[T source.Observer](late T, err error) {
	if err == nil {
		_ = late.Close()
	}
}

// closeAfter closes an observer whose use ended with cause, unless a call to it hangs.
func closeAfter(o source.Observer, cause error) error {
	if errors.As(cause, new(*hungError)) {
		return cause
	}
	return errors.Join(cause, o.Close())
}
