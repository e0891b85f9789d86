package mongolock

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/multilock/go/multilock/source"
)

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
			Source: "mongolock", Op: op, Name: l.record.Name, Err: errNoNumber,
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
	if err := l.ended(); err != nil {
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
	return doc, l.src.opError(ctx, op, l.record.Name, err)
}
