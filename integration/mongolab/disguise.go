package mongolab

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// disguised is the reply to a buildInfo without what says that this is FerretDB.
func disguised(reply bson.Raw) (bson.Raw, error) {
	var elements bson.D
	if err := bson.Unmarshal(reply, &elements); err != nil {
		return nil, err
	}
	return bson.Marshal(slices.DeleteFunc(elements, func(e bson.E) bool { return strings.HasPrefix(e.Key, "ferretdb") }))
}
