package multilock

import "context"

// hungError says that a call into a source had not come back when its context
// ended: on a hard NFS mount a system call can hang for as long as the server
// is away, and nothing can interrupt it.
type hungError struct{ cause error }

func (e *hungError) Error() string { return e.cause.Error() + ", while the lock source did not answer" }
func (e *hungError) Unwrap() error { return e.cause }

// bounded calls f, and returns at once when ctx ends, even if f hangs. In that
// case late gets what f returns in the end, to undo it.
func bounded[T any](ctx context.Context, f func() (T, error), late func(T, error)) (T, error) {
	if ctx.Done() == nil {
		return f()
	}
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		value, err := f()
		done <- outcome{value, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
	}
	go func() {
		o := <-done
		late(o.value, o.err)
	}()
	var none T
	return none, &hungError{cause: context.Cause(ctx)}
}
