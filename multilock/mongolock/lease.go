package mongolock

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// lease is a lock that is held. Every write has its token in the filter.
type lease struct {
	*remote.Holding
	src *Source

	changes *remote.Changes // each leaves its number

	tried atomic.Bool // a release was not answered: it may have been carried out
}

func (s *Source) newLease(name, token string, claim source.Claim, since boottime.Instant) *lease {
	return &lease{Holding: remote.NewHolding(source.Record{Name: name, Token: token, Claim: claim}, since), src: s, changes: remote.NewChanges(remote.Record{}, 0)}
}

var _ source.Lease = (*lease)(nil)

// mine finds the document while this lease holds the lock.
func (l *lease) mine(more ...bson.E) bson.D {
	return append(bson.D{{Key: idField, Value: l.src.id(l.Record().Name)}, {Key: lockedField, Value: l.Record().Token}}, more...)
}

// Renew implements source.Lease. A lock whose TTL is below four seconds has fewer tries.
func (l *lease) Renew(ctx context.Context) error {
	if err := l.Ended(); err != nil {
		return err
	}
	return l.beat(ctx, remote.RenewalLimit(l.Record().TTL))
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
		return l.src.opError(ctx, "renew", l.Record().Name, err)
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
	if err := l.Ended(); err != nil {
		return err
	}
	freed, err := l.free(ctx, l.src.timeout)
	switch {
	case err != nil:
		return l.src.opError(ctx, "release", l.Record().Name, err)
	case !freed:
		return l.End(l.lost())
	}
	_ = l.End(source.ErrReleased)
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
	doc, err := l.src.read(ctx, l.Record().Name, newest)
	if err != nil {
		return false, err
	}
	broken, _ := doc.raw.Lookup(brokenField).StringValueOK()
	return broken != l.Record().Token, nil
}

var errGone = errors.New("its token is not in the document any more: the lock was broken or removed")

func (l *lease) lost() error { return l.Lost(errGone) }
