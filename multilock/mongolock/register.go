package mongolock

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/multilock/go/multilock/source"
)

// Registers are the registers in the collection COLLECTION.registers. It is safe for concurrent
// use.
type Registers struct{ *server }

var _ source.Register = (*Register)(nil)

// OpenRegisters prepares to use registers. It does not connect to the server. The error is
// source.ErrInvalid for a location that cannot be used.
func OpenRegisters(at Place) (*Registers, error) {
	server, err := connect(at)
	if err != nil {
		return nil, err
	}
	return &Registers{server}, nil
}

// Close closes the connections of OpenRegisters.
func (r *Registers) Close() error { return r.disconnect() }

// Register returns the register with a name. It sends no request. The error is source.ErrInvalid
// for a name that cannot be used.
func (r *Registers) Register(name string) (*Register, error) {
	if err := source.CheckElement("register", name); err != nil {
		return nil, err
	}
	return &Register{server: r.server, name: name}, nil
}

// Register is one cell of bytes with a single operation that changes it: set-and-get. It is
// linearizable: every swap takes effect at one instant between its call and its return, and returns
// the value of the swap before. It is safe for concurrent use.
type Register struct {
	*server
	name string
}

const (
	valueField  = "value"
	numberField = "n"
	swapsField  = "at" // the time of the swap, for users
)

// Swap stores value and returns the previous value, and the number of this swap, which is larger
// than that of every swap that took effect earlier. old is nil if there was no swap before.
//
// Swap is one command, which the server carries out once, even if the driver sends it again. If all
// replies are lost, the previous value is unknown: then the error wraps source.ErrUnsure, and the
// swap may have taken effect, or may still do so. After any other error it has not, and never will.
func (r *Register) Swap(ctx context.Context, value []byte) (old []byte, n uint64, err error) {
	if _, err := r.ready(ctx); err != nil {
		return nil, 0, err
	}
	for range maxDoubts {
		old, n, err = r.swap(ctx, value)
		if !mongo.IsDuplicateKeyError(err) {
			break // otherwise one of two concurrent inserts failed
		}
	}
	switch {
	case mongo.IsDuplicateKeyError(err):
		return nil, 0, r.noRegister()
	case inDoubt(err):
		return nil, 0, errors.Join(source.ErrUnsure, r.opError(ctx, "swap", r.name, err))
	}
	return old, n, r.opError(ctx, "swap", r.name, err)
}

func (r *Register) swap(ctx context.Context, value []byte) ([]byte, uint64, error) {
	limited, cancel := r.within(ctx, r.timeout)
	defer cancel()
	update := bson.D{
		{Key: "$set", Value: bson.D{{Key: valueField, Value: append([]byte{}, value...)}}},
		{Key: "$inc", Value: bson.D{{Key: numberField, Value: int64(1)}}},
		{Key: "$currentDate", Value: bson.D{{Key: swapsField, Value: true}}},
	}
	before := options.FindOneAndUpdate().SetUpsert(true).SetReturnDocument(options.Before)
	// If the document with that _id is not a register, the filter does not match, and the upsert
	// fails with a duplicate key.
	filter := append(r.document(), bson.E{Key: numberField, Value: bson.D{{Key: "$gt", Value: 0}}})
	doc, err := r.collection(registerSuffix).FindOneAndUpdate(limited, filter, update, before).Raw()
	if errors.Is(err, mongo.ErrNoDocuments) {
		return nil, 1, nil
	}
	if err != nil {
		return nil, 0, err
	}
	old, n, err := r.content(doc)
	return old, n + 1, err
}

// Peek returns the current value and the number of the swap that stored it; nil and 0 if there was
// no swap. The value may be outdated.
func (r *Register) Peek(ctx context.Context) (value []byte, n uint64, err error) {
	var doc bson.Raw
	err = r.command(ctx, "peek", r.name, func(ctx context.Context, f facts) (err error) {
		doc, err = r.reading(registerSuffix, f, settled).FindOne(ctx, r.document()).Raw()
		return err
	})
	if errors.Is(err, mongo.ErrNoDocuments) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	return r.content(doc)
}

func (r *Register) document() bson.D { return bson.D{{Key: idField, Value: r.name}} }

// content decodes a register's document. The value is never nil, which would mean an unused
// register.
func (r *Register) content(doc bson.Raw) ([]byte, uint64, error) {
	_, value, isValue := doc.Lookup(valueField).BinaryOK()
	n, isNumber := doc.Lookup(numberField).AsInt64OK()
	if !isValue || !isNumber || n <= 0 {
		return nil, 0, r.noRegister()
	}
	return append([]byte{}, value...), uint64(n), nil
}

func (r *Register) noRegister() error {
	return &source.InvalidError{
		What: "register", Got: r.name, Why: "its document in the collection " + r.server.name + registerSuffix + " is not one; remove it",
	}
}
