package multilock

import (
	"context"
	"errors"

	"github.com/multilock/go/multilock/source"
)

// Outcome reads the last committed result of the lock's name. The error is ErrNoResult if the name has none,
// ErrUnsupported if the source stores no results, otherwise as for Verify.
func (l *Lock) Outcome(ctx context.Context) (Result, error) {
	return committing(ctx, l, func(c source.Committer) (Result, error) { return c.Outcome(ctx) })
}

// Commit records the result of the job under the lock, with the lock's name and token. For the errors see
// source.Committer. If ctx ends before the source answers, the error is joined to ErrUnsure: the call
// continues, and may still record the result.
func (l *Lock) Commit(ctx context.Context, r Result) error {
	record := l.Record()
	r.Name, r.Token = record.Name, record.Token
	_, err := committing(ctx, l, func(c source.Committer) (struct{}, error) { return struct{}{}, c.Commit(ctx, r) })
	return unsureIfHung(err)
}

// Forget removes the result of the lock's name, so that its job can run again.
// The errors are as for Commit.
func (l *Lock) Forget(ctx context.Context) error {
	_, err := committing(ctx, l, func(c source.Committer) (struct{}, error) { return struct{}{}, c.Forget(ctx) })
	return unsureIfHung(err)
}

// unsureIfHung is for calls that change something: a call that has not returned may have made its change,
// or make it later.
func unsureIfHung(err error) error {
	if errors.As(err, new(*hungError)) {
		return errors.Join(ErrUnsure, err)
	}
	return err
}

// committing calls f, if the source stores results.
func committing[T any](ctx context.Context, l *Lock, f func(source.Committer) (T, error)) (T, error) {
	c, ok := l.lease.(source.Committer)
	if !ok {
		var none T
		return none, ErrUnsupported
	}
	return underLock(ctx, l, func() (T, error) { return f(c) })
}
