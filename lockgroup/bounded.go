package lockgroup

import "context"

// prompt calls f, which only asks, and returns when ctx ends even if f hangs: a
// call into a filesystem whose server is away cannot be interrupted. Then nobody
// hears what f returns in the end.
func prompt[T any](ctx context.Context, f func(context.Context) (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		value, err := f(ctx)
		done <- outcome{value, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}
