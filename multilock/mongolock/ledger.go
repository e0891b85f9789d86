package mongolock

import (
	"bytes"
	"context"
	"encoding/json"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// The last result of a name is a field of the lock's own document, and is written
// under the condition that the lock is the writer's. So nobody can take the lock
// and not see it.

var _ source.Committer = (*lease)(nil)

// Commit implements source.Committer.
func (l *lease) Commit(ctx context.Context, r source.Result) error {
	const op = "commit the result"
	content, err := resultToBSON(r)
	if err != nil {
		return l.src.opError(ctx, op, l.Record().Name, err)
	}
	made := func(doc bson.Raw) bool {
		stored, ok := doc.Lookup(resultField).DocumentOK()
		return ok && bytes.Equal(stored, content)
	}
	return l.change(ctx, op, made, bson.D{{Key: resultField, Value: content}}, counted())
}

// resultToBSON gives a result the shape that it has in JSON.
func resultToBSON(r source.Result) (bson.Raw, error) {
	text, err := remote.EncodeResult(r)
	if err != nil {
		return nil, err
	}
	document, err := toBSON(json.RawMessage(text))
	if err != nil {
		return nil, err
	}
	return bson.Marshal(document)
}

// counted counts a change of the result.
func counted() bson.E {
	return bson.E{Key: "$inc", Value: bson.D{{Key: commitsField, Value: int64(1)}}}
}

// Forget implements source.Committer.
func (l *lease) Forget(ctx context.Context) error {
	return l.change(ctx, "forget the result", unseen, nil, bson.E{Key: "$unset", Value: bson.D{{Key: resultField, Value: ""}}}, counted())
}

// Outcome implements source.Committer. It is a sign of life that brings the
// document along: one command shows the result, and that the lock is still held.
func (l *lease) Outcome(ctx context.Context) (source.Result, error) {
	doc, err := l.fetch(ctx, "ask for the result", living())
	if err != nil {
		return source.Result{}, err
	}
	return readResult(l.Record().Name, doc)
}

// Result implements source.Ledger.
func (s *Source) Result(ctx context.Context, name string) (source.Result, error) {
	if err := s.CheckName(name); err != nil {
		return source.Result{}, err
	}
	doc, err := s.read(ctx, name, settled)
	if err != nil {
		return source.Result{}, s.opError(ctx, "read the result", name, err)
	}
	return readResult(name, doc.raw)
}

// Results implements source.Ledger.
func (s *Source) Results(ctx context.Context) ([]string, error) {
	return s.list(ctx, "list the results", everChanged(), bson.E{Key: resultField, Value: bson.D{{Key: "$exists", Value: true}}})
}

// everChanged finds the documents that have, or had, a result. There is an index.
func everChanged() bson.E {
	return bson.E{Key: commitsField, Value: bson.D{{Key: "$gt", Value: 0}}}
}

// readResult takes the result out of a lock's document. What cannot be understood
// becomes a result with Foreign set, whose job counts as run.
func readResult(name string, doc bson.Raw) (source.Result, error) {
	value, err := doc.LookupErr(resultField)
	if doc == nil || err != nil {
		return source.Result{}, source.ErrNoResult
	}
	raw, _ := value.DocumentOK()
	text, _ := toJSON(raw) // none is no record
	return remote.DecodeResult(name, text), nil
}
