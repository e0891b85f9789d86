// Package bounded has calls and pauses that end with their context.
package bounded

import (
	"context"
	"time"
)

// Settling is how much longer a call that changes something may take after its context has ended. Nearly
// every call returns within it, and leaves nothing half done in a process that may be about to exit.
const Settling = time.Second

// Call calls f and returns context.Cause(ctx) as soon as ctx ends, even if f hangs. The result of f is
// dropped then, and what f changes may be left half done: see Change.
func Call[T any](ctx context.Context, f func(context.Context) (T, error)) (T, error) {
	value, _, err := Within(ctx, 0, func() (T, error) { return f(ctx) }, func(T, error) {})
	return value, err
}

// Change is Call for a function that must not stop halfway: it gives f the settling time.
func Change[T any](ctx context.Context, f func(context.Context) (T, error)) (T, error) {
	value, _, err := Within(ctx, Settling, func() (T, error) { return f(ctx) }, func(T, error) {})
	return value, err
}

// Within calls f, which may hang: a call into a filesystem whose server is down cannot be interrupted.
// After ctx has ended, Within waits for f for the settling time and then returns context.Cause(ctx).
// late gets the result of such a call in the end, to undo it.
func Within[T any](ctx context.Context, settling time.Duration, f func() (T, error), late func(T, error)) (value T, hung bool, err error) {
	if ctx.Done() == nil {
		value, err = f()
		return value, false, err
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
		return o.value, false, o.err
	case <-ctx.Done():
	}
	patience := time.NewTimer(settling)
	defer patience.Stop()
	select {
	case o := <-done:
		return o.value, false, o.err
	case <-patience.C:
	}
	go func() {
		o := <-done
		late(o.value, o.err)
	}()
	return value, true, context.Cause(ctx)
}

// Sleep waits for d. The error is context.Cause(ctx) if ctx ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	_, err := Wait(ctx, d, nil)
	return err
}

// Wait is Sleep that ends early when wakeups has a value or is closed.
func Wait(ctx context.Context, d time.Duration, wakeups <-chan struct{}) (early bool, err error) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return false, nil
	case <-wakeups:
		return true, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}
