package mongolock

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/source"
)

// lease is a lock that is held. Every write has its token in the filter.
type lease struct {
	src    *Source
	record source.Record
	since  boottime.Instant

	changing sync.Mutex // one change at a time; guards steps
	steps    steps

	tried atomic.Bool // a release was not answered: it may have been carried out

	mu      sync.Mutex
	settled error // why the lease has ended, nil if it has not
}

func (s *Source) newLease(name, token string, claim source.Claim, since boottime.Instant) *lease {
	return &lease{src: s, record: source.Record{Name: name, Token: token, Claim: claim}, since: since}
}

var _ source.Lease = (*lease)(nil)

// Record implements source.Lease.
func (l *lease) Record() source.Record { return l.record }

// Since implements source.Lease.
func (l *lease) Since() boottime.Instant { return l.since }

// mine finds the document while this lease holds the lock.
func (l *lease) mine(more ...bson.E) bson.D {
	return append(bson.D{{Key: idField, Value: l.src.id(l.record.Name)}, {Key: lockedField, Value: l.record.Token}}, more...)
}

// minRenewal is the least time that a renewal is given: a busy server, or host, takes
// some hundred milliseconds. A lock whose TTL is below four seconds has fewer tries.
const minRenewal = time.Second

// Renew implements source.Lease. A renewal that takes long is given up, so that
// the next one can be tried on another connection before the tenure is over.
func (l *lease) Renew(ctx context.Context) error {
	if err := l.ended(); err != nil {
		return err
	}
	return l.beat(ctx, max(l.record.TTL/4, minRenewal))
}

// living is a sign of life, and perhaps other numbers that grow.
func living(more ...bson.E) bson.D {
	return bson.D{
		{Key: "$inc", Value: append(bson.D{{Key: beatsField, Value: int64(1)}}, more...)},
		{Key: "$currentDate", Value: bson.D{{Key: seenField, Value: true}}},
	}
}

func (l *lease) beat(ctx context.Context, limit time.Duration) error {
	matched := false
	err := l.src.repeat(ctx, limit, func(ctx context.Context) (err error) {
		matched, err = l.src.update(ctx, l.mine(), living())
		return err
	})
	switch {
	case err != nil:
		return l.src.opError(ctx, "renew", l.record.Name, err)
	case !matched:
		return l.lost()
	}
	return nil
}

// update changes the document that a filter finds, and says whether there was one.
func (s *server) update(ctx context.Context, filter, change bson.D) (matched bool, err error) {
	result, err := s.collection(locksSuffix).UpdateOne(ctx, filter, change)
	if err != nil {
		return false, err
	}
	return result.MatchedCount == 1, nil
}

// updateWithin does so in a limited time.
func (s *server) updateWithin(ctx context.Context, limit time.Duration, filter, change bson.D) (matched bool, err error) {
	limited, cancel := s.within(ctx, limit)
	defer cancel()
	return s.update(limited, filter, change)
}

// Release implements source.Lease.
func (l *lease) Release(ctx context.Context) error {
	if err := l.ended(); err != nil {
		return err
	}
	freed, err := l.free(ctx, l.src.timeout)
	switch {
	case err != nil:
		return l.src.opError(ctx, "release", l.record.Name, err)
	case !freed:
		return l.end(l.lost())
	}
	_ = l.end(source.ErrReleased)
	return nil
}

// free gives the lock back, and reports false if it was not this lease's. After a
// reply that was lost it does so once more, and if nothing is there to be given
// back any more the first one has done it, unless the lock was broken. Once ctx has
// ended nothing is sent again.
func (l *lease) free(ctx context.Context, limit time.Duration) (freed bool, err error) {
	for range maxDoubts {
		var matched bool
		matched, err = l.src.updateWithin(ctx, limit, l.mine(), freeing())
		switch {
		case matched:
			return true, nil
		case err == nil && !l.tried.Load():
			return false, nil
		case err == nil:
			return l.wasFreed(ctx)
		case !inDoubt(err):
			return false, err
		}
		l.tried.Store(true)
		if ctx.Err() != nil {
			break
		}
	}
	return false, err
}

// wasFreed tells a release from a break: whoever breaks a lock leaves its token.
func (l *lease) wasFreed(ctx context.Context) (bool, error) {
	doc, err := l.src.read(ctx, l.record.Name, newest)
	if err != nil {
		return false, err
	}
	broken, _ := doc.raw.Lookup(brokenField).StringValueOK()
	return broken != l.record.Token, nil
}

var errGone = errors.New("its token is not in the document any more: the lock was broken or removed")

func (l *lease) lost() error {
	return &source.LostError{Name: l.record.Name, Silence: l.since.Elapsed(), Err: errGone}
}

// ended says why the lease has ended.
func (l *lease) ended() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.settled
}

// end ends the lease, and returns why.
func (l *lease) end(why error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settled = why
	return why
}

// Close implements source.Lease.
func (l *lease) Close() error {
	if l.ended() == nil {
		_ = l.end(source.ErrReleased)
	}
	return nil
}
