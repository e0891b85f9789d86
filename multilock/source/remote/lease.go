package remote

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// Hold is what an author implements for a held lock. Each request is conditional on this
// acquisition, mine reports whether it still holds the lock, and errors name the step.
type Hold interface {
	// Gone returns why the lock is lost if it is no longer held by this acquisition.
	Gone() error
	// Beat sends a heartbeat within a time limit.
	Beat(ctx context.Context, limit time.Duration) (mine bool, err error)
	// Free frees the lock.
	Free(ctx context.Context) (Freed, error)
	// ReadResult reads the result of the lock's name, as of an instant at which the lock is held.
	ReadResult(ctx context.Context) (result []byte, mine bool, err error)
	// Write makes a change of the record, and of the result: see Changes.
	Write(ctx context.Context, op string, change Change) (Shown, error)
}

// Lease is a held lock. It implements source.Lease, except Fence, and source.Committer.
type Lease struct {
	*Holding
	home    Home
	hold    Hold
	changes *Changes
	tried   atomic.Bool // the reply to a release was lost: it may have taken effect
}

// While makes a request that is answered only while the lock is held.
func (l *Lease) While(ask func() (mine bool, err error)) error {
	if err := l.Ended(); err != nil {
		return err
	}
	mine, err := ask()
	if err == nil && !mine {
		err = l.Lost(l.hold.Gone())
	}
	return err
}

// Renew implements source.Lease.
func (l *Lease) Renew(ctx context.Context) error {
	return l.While(func() (bool, error) { return l.hold.Beat(ctx, RenewalLimit(l.Record().TTL)) })
}

// Release implements source.Lease. If the reply to an earlier try was lost and the lock is gone,
// that try has freed it, unless the lock was broken: breaking leaves the lock's token as a mark.
func (l *Lease) Release(ctx context.Context) error {
	if err := l.Ended(); err != nil {
		return err
	}
	freed, err := l.hold.Free(ctx)
	if freed.Doubt {
		l.tried.Store(true)
	}
	switch {
	case err != nil:
		return err
	case !freed.Done && (!l.tried.Load() || freed.Marked):
		return l.End(l.Lost(l.hold.Gone()))
	}
	_ = l.End(source.ErrReleased)
	return nil
}

// Change makes a change, and returns the revision that it left.
func (l *Lease) Change(ctx context.Context, op string, set func(*Change)) (left int64, err error) {
	left, err = l.changes.Make(l.Holding, l.hold.Gone(), set, func(c Change) (Shown, error) { return l.hold.Write(ctx, op, c) })
	if errors.Is(err, ErrAgain) {
		err = l.home.Named(ctx, op, l.Record().Name, err)
	}
	return left, err
}

// MarkJob implements source.Lease.
func (l *Lease) MarkJob(ctx context.Context, jobs ...process.Group) error {
	_, err := l.Change(ctx, "mark the job", func(c *Change) { c.Record.Groups = jobs })
	return err
}

// Commit implements source.Committer.
func (l *Lease) Commit(ctx context.Context, r source.Result) error {
	const op = "commit the result"
	content, err := EncodeResult(r)
	if err != nil {
		return l.home.Named(ctx, op, l.Record().Name, err)
	}
	_, err = l.Change(ctx, op, func(c *Change) { c.Result = content })
	return err
}

// Forget implements source.Committer.
func (l *Lease) Forget(ctx context.Context) error {
	_, err := l.Change(ctx, "delete the result", func(c *Change) { c.Forget = true })
	return err
}

// Outcome implements source.Committer: the result and the held lock are read as of the same
// instant.
func (l *Lease) Outcome(ctx context.Context) (r source.Result, err error) {
	var text []byte
	err = l.While(func() (mine bool, err error) {
		text, mine, err = l.hold.ReadResult(ctx)
		return mine, err
	})
	if err != nil {
		return source.Result{}, err
	}
	return resultOf(l.Record().Name, text)
}
