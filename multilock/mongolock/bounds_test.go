package mongolock

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multilock/go/multilock/source/remote"
)

// Whatever a document contains, the texts shown of it have a bounded length.
func TestStrangersTextsAreBounded(t *testing.T) {
	t.Parallel()
	long, most := strings.Repeat("x", 1<<20), 20<<10
	by := bson.D{{Key: "host", Value: long}, {Key: "pid", Value: 1}, {Key: "user", Value: long}, {Key: "command", Value: long}}
	raw, err := bson.Marshal(bson.D{
		{Key: lockedField, Value: long},
		{Key: heldField, Value: bson.D{{Key: "v", Value: 1}, {Key: "holder", Value: by}, {Key: "ttl_ms", Value: 1000}, {Key: "beats", Value: 1}}},
		{Key: resultField, Value: bson.D{
			{Key: "v", Value: 1}, {Key: "token", Value: long}, {Key: "by", Value: by}, {Key: "attempt", Value: 1},
			{Key: "why", Value: long}, {Key: "command", Value: long}, {Key: "signal", Value: long},
		}},
	})
	require.NoError(t, err)
	record := readDocument("x", raw).record()
	require.Empty(t, record.Foreign)
	require.Less(t, len(record.Token)+len(record.Holder.String()), most)
	result := remote.DecodeResult("x", resultIn(raw))
	require.Empty(t, result.Foreign)
	require.Less(t, len(result.Token)+len(result.By.Host)+len(result.Signal)+len(result.Why)+len(result.Command), most)
}
