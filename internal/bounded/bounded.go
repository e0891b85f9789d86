// Package bounded has calls and pauses that end when their context does.
package bounded

import (
	"context"
	"time"
)

// Call calls f, which only asks, and returns context.Cause(ctx) soon after ctx ends even
// if f hangs: a call into a filesystem whose server is away cannot be interrupted. Then
// nobody hears what f returns in the end.
func Call[T any](ctx context.Context, f func(context.Context) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		value, err := f(ctx)
		done <- answer{value, err}
	}()
	select {
	case a := <-done:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// Sleep waits for d. The error is context.Cause(ctx) if that ends before.
func Sleep(ctx context.Context, d time.Duration) error {
	_, err := Wait(ctx, d, nil)
	return err
}

// Wait does the same, and ends early with news.
func Wait(ctx context.Context, d time.Duration, news <-chan struct{}) (early bool, err error) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return false, nil
	case <-news:
		return true, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}
