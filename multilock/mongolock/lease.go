package mongolock

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// lease is a held lock. Every write has its token in the filter.
type lease struct {
	*remote.Lease
	lock
	token string
}

var _ source.Committer = (*lease)(nil)

var errGone = errors.New("its token is no longer in the document: the lock was broken or removed")

// Gone implements remote.Hold.
func (l *lease) Gone() error { return errGone }

// living returns the update of a heartbeat, which can increment more counters.
func living(more ...bson.E) bson.D {
	return bson.D{
		{Key: "$inc", Value: append(bson.D{{Key: beatsField, Value: int64(1)}}, more...)},
		{Key: "$currentDate", Value: bson.D{{Key: seenField, Value: true}}},
	}
}

// Beat implements remote.Hold. With a TTL below four seconds there is less time for retries.
func (l *lease) Beat(ctx context.Context, limit time.Duration) (mine bool, err error) {
	err = l.src.repeat(ctx, limit, func(ctx context.Context) (err error) {
		mine, err = l.src.update(ctx, l.by(l.token), living())
		return err
	})
	return mine, l.src.opError(ctx, "renew", l.name, err)
}

// Free implements remote.Hold.
func (l *lease) Free(ctx context.Context) (remote.Freed, error) {
	return l.free(ctx, "release", l.token, l.by(l.token), freeing())
}

// update changes the document that matches a filter, and reports whether there was one.
func (s *server) update(ctx context.Context, filter, change bson.D) (matched bool, err error) {
	result, err := s.collection(locksSuffix).UpdateOne(ctx, filter, change)
	if err != nil {
		return false, err
	}
	return result.MatchedCount == 1, nil
}

// updateWithin is update with a time limit.
func (s *server) updateWithin(ctx context.Context, limit time.Duration, filter, change bson.D) (matched bool, err error) {
	limited, cancel := s.within(ctx, limit)
	defer cancel()
	return s.update(limited, filter, change)
}

// Write implements remote.Hold. The last result of a name is a field of the lock's own document, so
// no process can acquire the lock without seeing it.
func (l *lease) Write(ctx context.Context, op string, c remote.Change) (shown remote.Shown, err error) {
	update, content, err := writing(c)
	if err != nil {
		return shown, l.src.opError(ctx, op, l.name, err)
	}
	filter, matched := l.by(l.token, bson.E{Key: stepField, Value: c.Before}), false
	for range maxDoubts { // each has its own time limit, because the driver may use up all of it
		if matched, err = l.src.updateWithin(ctx, l.src.timeout, filter, update); !inDoubt(err) {
			break
		}
		shown.Doubt = true
	}
	if err == nil && matched {
		shown.Mine, shown.Step, shown.Left = true, c.Record.Step, c.Record.Step
		return shown, nil
	}
	doc := document{}
	if err == nil {
		doc, err = l.src.read(ctx, l.name, newest)
	}
	shown.Mine, shown.Step, shown.Left = doc.token() == l.token, doc.held.Step, doc.held.Step
	if stored, ok := doc.raw.Lookup(resultField).DocumentOK(); ok {
		shown.Done = content != nil && bytes.Equal(stored, content)
	}
	return shown, l.src.opError(ctx, op, l.name, err)
}

// writing returns the update that makes a change, and the result that it stores, nil for none.
func writing(c remote.Change) (update bson.D, content bson.Raw, err error) {
	set, count := bson.D{{Key: stepField, Value: c.Record.Step}}, bson.E{Key: "$inc", Value: bson.D{{Key: commitsField, Value: int64(1)}}}
	groups, err := marks(c.Record.Groups)
	if err != nil {
		return nil, nil, err
	}
	set = append(set, bson.E{Key: marksField, Value: groups})
	switch {
	case c.Forget:
		update = bson.D{{Key: "$unset", Value: bson.D{{Key: resultField, Value: ""}}}, count}
	case c.Result != nil:
		if content, err = resultToBSON(c.Result); err != nil {
			return nil, nil, err
		}
		set, update = append(set, bson.E{Key: resultField, Value: content}), bson.D{count}
	}
	return append(update, bson.E{Key: "$set", Value: set}), content, nil
}

func marks(groups []process.Group) (bson.A, error) {
	list := bson.A{}
	for _, g := range groups {
		mark, err := toBSON(g)
		if err != nil {
			return nil, err
		}
		list = append(list, mark)
	}
	return list, nil
}

// resultToBSON converts a result from JSON.
func resultToBSON(text []byte) (bson.Raw, error) {
	document, err := toBSON(json.RawMessage(text))
	if err != nil {
		return nil, err
	}
	return bson.Marshal(document)
}

// ReadResult implements remote.Hold. A heartbeat returns the document: one command reads the result
// and verifies that the lock is still held.
func (l *lease) ReadResult(ctx context.Context) (result []byte, mine bool, err error) {
	doc, mine, err := l.fetch(ctx, "ask for the result", living())
	return resultIn(doc), mine, err
}

// Fence implements source.Lease: the number is a counter in the lock's document, which stays when
// the lock is released or broken. Incrementing it is a heartbeat. A number whose reply was lost is
// not used.
func (l *lease) Fence(ctx context.Context) (number uint64, err error) {
	const op = "draw a fence number"
	err = l.While(func() (mine bool, err error) {
		doc, mine, err := l.fetch(ctx, op, living(bson.E{Key: fenceField, Value: int64(1)}))
		if err != nil || !mine {
			return mine, err
		}
		drawn, ok := doc.Lookup(fenceField).AsInt64OK()
		if !ok || drawn <= 0 {
			return true, &source.OpError{
				Source: pkg, Op: op, Name: l.name, Err: errNoNumber,
				Hint: "another program has written there; set it to a number larger than any that was used",
			}
		}
		number = uint64(drawn)
		return true, nil
	})
	return number, err
}

var errNoNumber = errors.New("the field " + fenceField + " of its document is not a positive number")

// fetch makes an idempotent change, and returns the whole document after it. The majority's
// acknowledgement proves that this was the newest state: a primary that was replaced without
// knowing it gets none.
func (l *lease) fetch(ctx context.Context, op string, update bson.D) (doc bson.Raw, mine bool, err error) {
	after := options.FindOneAndUpdate().SetReturnDocument(options.After)
	err = l.src.repeat(ctx, l.src.timeout, func(ctx context.Context) (err error) {
		doc, err = l.src.collection(locksSuffix).FindOneAndUpdate(ctx, l.by(l.token), update, after).Raw()
		return err
	})
	if errors.Is(err, mongo.ErrNoDocuments) {
		return nil, false, nil
	}
	return doc, err == nil, l.src.opError(ctx, op, l.name, err)
}
