package mongolock

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// change makes one change: the fields to be set, and more. done says whether a document
// in which the lock is not this lease's any more shows that it was made before.
func (l *lease) change(ctx context.Context, op string, done func(bson.Raw) bool, set bson.D, more ...bson.E) error {
	_, err := l.changes.Make(l.Holding, errGone, func(*remote.Record) {}, func(next remote.Record, before int64) (shown remote.Shown, err error) {
		fields := append(set[:len(set):len(set)], bson.E{Key: stepField, Value: next.Step})
		update := append(bson.D{{Key: "$set", Value: fields}}, more...)
		matched := false
		for range maxDoubts { // each has its own time, for the driver may use up all of it
			if matched, err = l.src.updateWithin(ctx, l.src.timeout, l.mine(bson.E{Key: stepField, Value: before}), update); !inDoubt(err) {
				break
			}
			shown.Doubt = true
		}
		if err == nil && matched {
			shown.Mine, shown.Step, shown.Left = true, next.Step, next.Step
			return shown, nil
		}
		doc := document{}
		if err == nil {
			doc, err = l.src.read(ctx, l.Record().Name, newest)
		}
		shown.Mine, shown.Step, shown.Left = doc.token() == l.Record().Token, doc.held.Step, doc.held.Step
		shown.Done = err == nil && doc.raw != nil && done(doc.raw)
		return shown, l.src.opError(ctx, op, l.Record().Name, err)
	})
	if errors.Is(err, remote.ErrAgain) {
		err = l.src.opError(ctx, op, l.Record().Name, err)
	}
	return err
}

// unseen is for a change that leaves nothing behind when the lock is another's.
func unseen(bson.Raw) bool { return false }

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
