package mongolock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

	"github.com/multilock/go/multilock/source"
)

func TestUnfitCollections(t *testing.T) {
	options := func(key string, value any) bson.Raw {
		raw, err := bson.Marshal(bson.D{{Key: key, Value: value}})
		require.NoError(t, err)
		return raw
	}
	for name, test := range map[string]struct {
		spec mongo.CollectionSpecification
		want string
	}{
		"plain":          {mongo.CollectionSpecification{Type: "collection", Options: options("validationLevel", "off")}, ""},
		"an old server":  {mongo.CollectionSpecification{}, ""},
		"a view":         {mongo.CollectionSpecification{Type: "view"}, "it is a view"},
		"a time series":  {mongo.CollectionSpecification{Type: "timeseries"}, "it is a timeseries"},
		"capped":         {mongo.CollectionSpecification{Type: "collection", Options: options("capped", true)}, "is capped"},
		"with collation": {mongo.CollectionSpecification{Type: "collection", Options: options("collation", bson.D{{Key: "locale", Value: "de"}})}, "has a collation"},
	} {
		why := unfit(test.spec)
		require.Equal(t, test.want == "", why == "", "%s: %s", name, why)
		require.Contains(t, why, test.want, name)
	}
}

func TestKindsOfServers(t *testing.T) {
	for kind, replicated := range map[greeting]bool{
		{}:                                  false,
		{SetName: "rs0"}:                    true,
		{Message: "isdbgrid"}:               true,
		{Message: "isdbgrid", SetName: "x"}: true,
	} {
		f := kind.facts()
		require.Equal(t, replicated, f.replicated)
		require.NotEmpty(t, f.kind)
	}
}

func TestInDoubt(t *testing.T) {
	refused := mongo.WriteErrors{{Code: 11000, Message: "E11000 duplicate key error collection: a.b index: _id_ dup key: {}"}}
	unconfirmed := &mongo.WriteConcernError{Code: 64}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"nothing":                         {nil, false},
		"the network":                     {mongo.CommandError{Labels: []string{"NetworkError"}, Wrapped: io.EOF}, true},
		"a timeout":                       {context.DeadlineExceeded, true},
		"anything else":                   {errors.New("?"), true},
		"no server was found":             {fmt.Errorf("x: %w", topology.ServerSelectionError{Wrapped: context.DeadlineExceeded}), false},
		"no document was found":           {mongo.ErrNoDocuments, false},
		"ours":                            {&source.InvalidError{}, false},
		"a duplicate":                     {mongo.WriteException{WriteErrors: refused}, false},
		"a duplicate of findAndModify":    {mongo.CommandError{Code: 11000}, false},
		"a duplicate, not confirmed":      {mongo.WriteException{WriteErrors: refused, WriteConcernError: unconfirmed}, true},
		"done, not confirmed":             {mongo.WriteException{WriteConcernError: unconfirmed}, true},
		"a statement that was ended":      {mongo.WriteException{WriteErrors: mongo.WriteErrors{{Code: 11602}}}, true},
		"not allowed":                     {mongo.CommandError{Code: codeUnauthorized}, false},
		"another node is the primary":     {mongo.CommandError{Code: codeNotPrimary, Labels: []string{"RetryableWriteError"}}, true},
		"a shard did not answer in time":  {mongo.WriteException{WriteErrors: mongo.WriteErrors{{Code: 202}}}, true},
		"the primary steps down":          {mongo.CommandError{Code: 11602, Labels: []string{"RetryableWriteError"}}, true},
		"time is over at the server":      {mongo.CommandError{Code: 50}, true},
		"unknown, and may be sent again":  {mongo.CommandError{Code: 4711, Labels: []string{"RetryableWriteError"}}, true},
		"unknown, and may not":            {mongo.CommandError{Code: 4711}, false},
		"a reply that cannot be read":     {mongo.CommandError{}, true},
		"a validator of the collection":   {mongo.WriteException{WriteErrors: mongo.WriteErrors{{Code: codeValidation}}}, false},
		"the session has gone on already": {mongo.CommandError{Code: 225}, true},
	} {
		require.Equal(t, test.want, inDoubt(test.err), name)
	}
}

func TestTaken(t *testing.T) {
	written := func(text string) error {
		return mongo.WriteException{WriteErrors: mongo.WriteErrors{{Code: 11000, Message: text}}}
	}
	require.True(t, taken(written("E11000 duplicate key error collection: jobs.locks index: _id_ dup key: { _id: \"nightly\" }")))
	require.True(t, taken(written("E11000 duplicate key error"))) // an error without details counts
	require.False(t, taken(written("E11000 duplicate key error collection: jobs.locks index: owner_1 dup key: { owner: null }")))
	require.False(t, taken(mongo.CommandError{Code: codeUnauthorized}))
	require.False(t, taken(nil))
}
