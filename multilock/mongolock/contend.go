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

// contender is one contender's attempts at one lock. Each attempt has a token of
// its own: a command may be carried out long after its connection was lost, and
// must not bring a lock back to life that was given up, or broken, since.
type contender struct {
	observer
	claim   source.Claim
	doubted []string // tokens of attempts that may still be carried out
	inPlace string   // one of them, which a look found in place
}

// Contend implements source.Source.
func (s *Source) Contend(ctx context.Context, name string, claim source.Claim, patience source.Patience) (source.Contender, error) {
	if err := s.CheckName(name); err != nil {
		return nil, err
	}
	if _, err := s.readyToWrite(ctx); err != nil {
		return nil, err
	}
	claim = claim.By(s.Self())
	return &contender{observer: s.newObserver(name, patience), claim: claim}, nil
}

// Try implements source.Contender.
func (c *contender) Try(ctx context.Context) (source.Lease, error) {
	if token := c.inPlace; token != "" {
		c.inPlace = ""
		if lease, err := c.adopt(ctx, token, nil); !errors.Is(err, errAgain) {
			return lease, err
		}
	}
	var err error
	for range maxDoubts {
		var lease source.Lease
		if lease, err = c.attempt(ctx); !errors.Is(err, errAgain) {
			return lease, err
		}
		if over := context.Cause(ctx); over != nil {
			return nil, over
		}
	}
	return nil, c.src.opError(ctx, "acquire", c.Name, err)
}

// errAgain says that an attempt was not carried out, as far as can be seen.
var errAgain = errors.New("the connection is lost again and again")

// attempt is the one upsert that takes a lock. A document of that _id which is not
// free makes it a duplicate.
func (c *contender) attempt(ctx context.Context) (source.Lease, error) {
	token := source.NewToken()
	update, err := c.acquisition(token)
	if err != nil {
		return nil, c.src.opError(ctx, "acquire", c.Name, err)
	}
	start := boottime.Now()
	limited, cancel := c.src.within(ctx, c.src.timeout)
	defer cancel()
	filter := bson.D{{Key: idField, Value: c.src.id(c.Name)}, {Key: lockedField, Value: false}}
	_, err = c.src.collection(locksSuffix).UpdateOne(limited, filter, update, options.UpdateOne().SetUpsert(true))
	switch {
	case err == nil:
		return c.src.newLease(c.Name, token, c.claim, start), nil
	case taken(err):
		return nil, source.ErrHeld
	case !inDoubt(err):
		return nil, c.src.opError(ctx, "acquire", c.Name, err)
	}
	c.doubted = append(c.doubted, token)
	return c.adopt(ctx, token, err)
}

func (c *contender) acquisition(token string) (bson.D, error) {
	set, err := claimed(token, c.claim)
	if err != nil {
		return nil, err
	}
	if c.src.Group() != "" {
		set = append(set, bson.E{Key: groupField, Value: c.src.Group()})
	}
	return bson.D{
		{Key: "$set", Value: set},
		{Key: "$unset", Value: bson.D{{Key: marksField, Value: ""}}}, // somebody may have unlocked by hand
		{Key: "$currentDate", Value: bson.D{{Key: acquiredField, Value: true}, {Key: seenField, Value: true}}},
	}, nil
}

// adopt learns what became of an attempt whose reply was lost. It gives a sign of
// life under the attempt's token: if that finds the lock, it is held, and silence
// counts from now on. The error is errAgain if the attempt is not in place.
func (c *contender) adopt(ctx context.Context, token string, cause error) (source.Lease, error) {
	lease := c.src.newLease(c.Name, token, c.claim, boottime.Now())
	err := lease.beat(ctx, c.src.timeout)
	switch {
	case err == nil:
		c.settle(token)
		return lease, nil
	case errors.Is(err, source.ErrLost):
		return nil, errAgain
	}
	return nil, errors.Join(source.ErrUnsure, c.src.opError(ctx, "acquire", c.Name, errors.Join(cause, err)))
}

func (c *contender) settle(token string) {
	c.doubted = slices.DeleteFunc(c.doubted, func(doubted string) bool { return doubted == token })
}

// Wake implements source.Contender: nobody tells.
func (c *contender) Wake() <-chan struct{} { return nil }

// Look implements source.Observer. Finding an attempt of its own in place it
// reports the lock as free: the next Try will verify and take it.
func (c *contender) Look(ctx context.Context) (source.Sighting, error) {
	seen, err := c.observer.Look(ctx)
	if err == nil && seen.State != source.StateFree && slices.Contains(c.doubted, c.doc.token()) {
		c.inPlace = c.doc.token()
		return c.Free(), nil
	}
	return seen, err
}

// withdrawal is how long the end of a contender may take, all in all.
const withdrawal = 2 * time.Second

// Close takes back what is in doubt. One that is carried out even later is free
// after its TTL.
func (c *contender) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), withdrawal-remote.Grace)
	defer cancel()
	var left error
	for _, token := range c.doubted {
		lease := c.src.newLease(c.Name, token, c.claim, boottime.Now())
		if _, err := lease.free(ctx, withdrawal); err != nil {
			left = err
			break // no server, for all of them
		}
	}
	c.doubted = nil
	return errors.Join(left, c.observer.Close())
}
