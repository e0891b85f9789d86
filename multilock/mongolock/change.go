package mongolock

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// steps numbers the changes that a holder makes under its lock. Each has a number
// of its own, which it leaves in the document, and is conditional on the number of
// the one before. So it is made once, however often it has to be sent: one that was
// carried out without an answer finds its own number when it comes again, and one
// that was delayed on the way cannot undo a later one.
type steps struct {
	drawn int64 // the last number that was given to a change
	known int64 // the number that the document has, as far as is known
	blur  bool  // a change ended without an answer, and may have set its number since
}

// change makes one change: the fields to be set, and more. done says whether a document
// in which the lock is not this lease's any more shows that it was made before.
func (l *lease) change(ctx context.Context, op string, done func(bson.Raw) bool, set bson.D, more ...bson.E) error {
	if err := l.Ended(); err != nil {
		return err
	}
	l.changing.Lock()
	defer l.changing.Unlock()
	l.steps.drawn++
	update := bson.D{{Key: "$set", Value: append(set, bson.E{Key: stepField, Value: l.steps.drawn})}}
	return l.carryOut(ctx, op, append(update, more...), done)
}

// unseen is for a change that leaves nothing behind when the lock is another's.
func unseen(bson.Raw) bool { return false }

func (l *lease) carryOut(ctx context.Context, op string, update bson.D, done func(bson.Raw) bool) error {
	var doubt error // of this change
	for range maxDoubts {
		matched, err := l.src.updateWithin(ctx, l.src.timeout, l.mine(bson.E{Key: stepField, Value: l.steps.known}), update)
		switch {
		case matched:
			l.steps.known = l.steps.drawn
			return nil
		case err == nil && doubt == nil && !l.steps.blur:
			return l.lost()
		case err == nil:
			made, err := l.wasMade(ctx, done)
			if made || errors.Is(err, source.ErrLost) {
				return err
			}
			doubt = errors.Join(doubt, err)
		case !inDoubt(err) && doubt == nil:
			return l.src.opError(ctx, op, l.Record().Name, err)
		default:
			doubt, l.steps.blur = err, true
		}
	}
	return errors.Join(source.ErrUnsure, l.src.opError(ctx, op, l.Record().Name, doubt))
}

// wasMade reads what became of a change that found nothing to change. It notes the
// number that the document has, for the next attempt.
func (l *lease) wasMade(ctx context.Context, done func(bson.Raw) bool) (bool, error) {
	doc, err := l.src.read(ctx, l.Record().Name, newest)
	switch {
	case err != nil:
		return false, err
	case doc.token() == l.Record().Token:
		l.steps.known = doc.held.Step
		return l.steps.known == l.steps.drawn, nil
	case doc.raw != nil && done(doc.raw):
		return true, nil
	}
	return false, l.lost()
}

// MarkJob implements source.Lease.
func (l *lease) MarkJob(ctx context.Context, jobs ...process.Group) error {
	mark := bson.A{}
	for _, job := range jobs {
		group, err := toBSON(job)
		if err != nil {
			return l.src.opError(ctx, "mark the job", l.Record().Name, err)
		}
		mark = append(mark, group)
	}
	return l.change(ctx, "mark the job", unseen, bson.D{{Key: marksField, Value: mark}})
}

// Fence implements source.Lease: the number is a counter in the lock's document,
// which stays when the lock is released or broken. Drawing one is a sign of life. A
// number whose reply was lost is nobody's.
func (l *lease) Fence(ctx context.Context) (uint64, error) {
	const op = "draw a fence number"
	doc, err := l.fetch(ctx, op, living(bson.E{Key: fenceField, Value: int64(1)}))
	if err != nil {
		return 0, err
	}
	number, ok := doc.Lookup(fenceField).AsInt64OK()
	if !ok || number <= 0 {
		return 0, &source.OpError{
			Source: "mongolock", Op: op, Name: l.Record().Name, Err: errNoNumber,
			Hint: "somebody else has written there; set it to a number larger than any that was used",
		}
	}
	return uint64(number), nil
}

var errNoNumber = errors.New("the field " + fenceField + " of its document is not a positive number")

// fetch makes a change that does no harm if it is made twice, and returns the whole
// document after it. That the majority acknowledged it proves that this was the
// newest state: a primary that was replaced without knowing gets no such answer.
func (l *lease) fetch(ctx context.Context, op string, update bson.D) (bson.Raw, error) {
	if err := l.Ended(); err != nil {
		return nil, err
	}
	after := options.FindOneAndUpdate().SetReturnDocument(options.After)
	var doc bson.Raw
	err := l.src.repeat(ctx, l.src.timeout, func(ctx context.Context) (err error) {
		doc, err = l.src.collection(locksSuffix).FindOneAndUpdate(ctx, l.mine(), update, after).Raw()
		return err
	})
	if errors.Is(err, mongo.ErrNoDocuments) {
		return nil, l.lost()
	}
	return doc, l.src.opError(ctx, op, l.Record().Name, err)
}
