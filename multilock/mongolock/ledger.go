package mongolock

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multilock/go/multilock/source"
)

// Result implements source.Ledger.
func (s *Source) Result(ctx context.Context, name string) (source.Result, error) {
	return s.ReadResult(name, func() ([]byte, error) {
		doc, err := s.read(ctx, name, settled)
		return resultIn(doc.raw), s.opError(ctx, "read the result", name, err)
	})
}

// Results implements source.Ledger.
func (s *Source) Results(ctx context.Context) ([]string, error) {
	return s.list(ctx, "list the results", everChanged(), bson.E{Key: resultField, Value: bson.D{{Key: "$exists", Value: true}}})
}

// everChanged matches the documents that have, or had, a result. It uses the index.
func everChanged() bson.E {
	return bson.E{Key: commitsField, Value: bson.D{{Key: "$gt", Value: 0}}}
}

// resultIn returns the result in a lock's document as JSON, or nil if the document has none. If the field is
// not a document, the text is empty: an unreadable result.
func resultIn(doc bson.Raw) []byte {
	value, err := doc.LookupErr(resultField)
	if doc == nil || err != nil {
		return nil
	}
	raw, _ := value.DocumentOK()
	text, _ := toJSON(raw)
	return append([]byte{}, text...)
}
