package cloudshell

import (
	"context"
	"errors"
	"sync"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// tenure is what all kinds of leases have in common: one operation at a time, and an end.
type tenure struct {
	src    *Source
	base   string
	record source.Record
	sign   boottime.Instant // before the last confirmed sign of life; of the operation at work
	turn   chan struct{}    // taken by the operation at work

	end     sync.Mutex
	settled error // what all calls answer after the end, nil before
}

func newTenure(s *Source, base string, record source.Record, sign boottime.Instant) *tenure {
	return &tenure{src: s, base: base, record: record, sign: sign, turn: make(chan struct{}, 1)}
}

// Record implements source.Lease.
func (l *tenure) Record() source.Record { return l.record }

// MarkJob implements source.Lease: there is no place for it.
func (l *tenure) MarkJob(context.Context, process.Group) error { return source.ErrUnsupported }

// enter begins an operation, and waits for the one before. The requests of an
// operation are not cancelled half-way: each has its own limit of time. So what it
// has done is always known, or known to be unknown.
func (l *tenure) enter(ctx context.Context) (context.Context, error) {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := l.outcome(); err != nil {
		l.leave()
		return nil, err
	}
	return context.WithoutCancel(ctx), nil
}

func (l *tenure) leave() { <-l.turn }

func (l *tenure) outcome() error {
	l.end.Lock()
	defer l.end.Unlock()
	return l.settled
}

// settle ends the lease, if err is the end of it; later calls answer with that.
func (l *tenure) settle(err error) {
	l.end.Lock()
	defer l.end.Unlock()
	switch {
	case l.settled != nil:
	case err == nil:
		l.settled = source.ErrReleased
	case errors.Is(err, source.ErrLost):
		l.settled = err
	}
}

// Close implements source.Lease.
func (l *tenure) Close() error {
	l.settle(nil)
	return nil
}

// explain turns an error into what it means for the holder.
func (l *tenure) explain(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errGone), errors.Is(err, errMissing), errors.Is(err, errEnded):
		return &source.LostError{Name: l.record.Name, Silence: l.sign.Elapsed(), Err: err}
	}
	return opError(op, l.record.Name, err)
}
