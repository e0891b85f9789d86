package remote

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// Hold is what an author writes for a lock that is held. Each asks for this very acquisition, mine
// says whether it was there, and errors name the step.
type Hold interface {
	// Gone is why the lock is lost that was not there.
	Gone() error
	// Beat sends a heartbeat, in limited time.
	Beat(ctx context.Context, limit time.Duration) (mine bool, err error)
	// Free frees the lock.
	Free(ctx context.Context) (Freed, error)
	// ReadResult reads the result of the lock's name, at an instant at which the lock is held.
	ReadResult(ctx context.Context) (result []byte, mine bool, err error)
	// Write makes a change of the record, and of the result: see Changes.
	Write(ctx context.Context, op string, change Change) (Shown, error)
}

// Lease is a lock that is held. It is all of a source.Lease but for Fence, and a source.Committer.
type Lease struct {
	*Holding
	home    Home
	hold    Hold
	changes *Changes
	tried   atomic.Bool // a release was not answered: it may have been carried out
}

// While asks something of the server that is answered only while the lock is held.
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

// Release implements source.Lease. After an answer that was lost, nothing to be released is what the
// first try has left, unless the lock was broken: whoever does that leaves its token.
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

// Change makes a change, and returns what it has left.
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
	_, err := l.Change(ctx, "forget the result", func(c *Change) { c.Forget = true })
	return err
}

// Outcome implements source.Committer: one instant shows the result, and that the lock is held.
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
