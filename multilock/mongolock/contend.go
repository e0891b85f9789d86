package mongolock

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// contender makes one contender's attempts at one lock. Each attempt has a token of its own: a
// command may take effect long after its connection was lost, and must not restore a lock that was
// given up, or broken, since.
type contender struct {
	*remote.Contender
	lock
	doubted []string // tokens of attempts that may still take effect
	inPlace string   // one of them, which a look found in the document
}

// Contend implements source.Source.
func (s *Source) Contend(ctx context.Context, name string, claim source.Claim, policy source.StalePolicy) (_ source.Contender, err error) {
	c := &contender{lock: lock{src: s, name: name}}
	if c.Contender, err = remote.NewContender(s, c, name, claim, policy); err == nil {
		_, err = s.readyToWrite(ctx)
	}
	return c, err
}

// Attempt implements remote.Attempts with the one upsert that acquires a lock. If a document with
// that _id is not free, the upsert fails with a duplicate key.
func (c *contender) Attempt(ctx context.Context) (source.Lease, error) {
	if token := c.inPlace; token != "" {
		c.inPlace = ""
		return c.adopt(ctx, token, nil)
	}
	token, start := source.NewToken(), boottime.Now()
	err := c.upsert(ctx, token)
	switch {
	case err == nil:
		return c.acquired(token, start), nil
	case taken(err):
		return nil, source.ErrHeld
	case !inDoubt(err):
		return nil, c.src.opError(ctx, remote.Acquire, c.name, err)
	}
	c.doubted = append(c.doubted, token)
	return c.adopt(ctx, token, err)
}

func (c *contender) upsert(ctx context.Context, token string) error {
	update, err := c.acquisition(token)
	if err != nil {
		return err
	}
	limited, cancel := c.src.within(ctx, c.src.timeout)
	defer cancel()
	_, err = c.src.collection(locksSuffix).UpdateOne(limited, c.by(false), update, options.UpdateOne().SetUpsert(true))
	return err
}

func (c *contender) acquisition(token string) (bson.D, error) {
	set, err := claimed(token, c.Claim)
	if err != nil {
		return nil, err
	}
	if c.src.Group() != "" {
		set = append(set, bson.E{Key: groupField, Value: c.src.Group()})
	}
	return bson.D{
		{Key: "$set", Value: set},
		{Key: "$unset", Value: bson.D{{Key: marksField, Value: ""}}}, // the lock may have been unlocked by hand
		{Key: "$currentDate", Value: bson.D{{Key: acquiredField, Value: true}, {Key: seenField, Value: true}}},
	}, nil
}

func (c *contender) acquired(token string, since boottime.Instant) *lease {
	l := &lease{lock: lock{src: c.src, name: c.name}, token: token}
	l.Lease = c.Acquired(l, remote.Record{Token: token}, since, 0)
	return l
}

// adopt determines the outcome of an attempt whose reply was lost. It sends a heartbeat with the
// attempt's token: if that finds the lock, the lock is held, and its validity counts from now on.
// The error is remote.ErrAgain if the attempt did not take effect.
func (c *contender) adopt(ctx context.Context, token string, cause error) (source.Lease, error) {
	l := c.acquired(token, boottime.Now())
	mine, err := l.Beat(ctx, c.src.timeout)
	switch {
	case err != nil:
		return nil, c.Failed(c.src.opError(ctx, remote.Acquire, c.name, errors.Join(cause, err)), true)
	case !mine:
		return nil, remote.ErrAgain
	}
	c.doubted = slices.DeleteFunc(c.doubted, func(doubted string) bool { return doubted == token })
	return l, nil
}

// See implements remote.Lock.
func (c *contender) See(ctx context.Context) (remote.Seen, error) {
	seen, err := c.lock.See(ctx)
	if seen.Ours = seen.Held && slices.Contains(c.doubted, c.doc.token()); seen.Ours {
		c.inPlace = c.doc.token() // the next attempt verifies it and takes it over
	}
	return seen, err
}

// withdrawal is the time limit for closing a contender.
const withdrawal = 2 * time.Second

// Close withdraws attempts whose outcome is unknown. A lock of an attempt that takes effect even
// later is free after its TTL.
func (c *contender) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), withdrawal-remote.Grace)
	defer cancel()
	var left error
	for _, token := range c.doubted {
		if _, _, left = c.unlock(ctx, withdrawal, c.by(token), freeing()); left != nil {
			break // no server: the others would fail, too
		}
	}
	c.doubted = nil
	return left
}
