package mongolock

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
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
