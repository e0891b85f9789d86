package mongolock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// FuzzDocument: any document in the collection is either free or held: by a known or by an unknown
// process.
func FuzzDocument(f *testing.F) {
	claim := source.Claim{Holder: source.Holder{Identity: process.Identity{Host: "h1", PID: 7}}, TTL: time.Minute, Heartbeat: time.Second}
	set, err := claimed("token", claim)
	require.NoError(f, err)
	for _, seed := range []bson.D{
		{}, {{Key: "locked", Value: false}}, {{Key: "locked", Value: true}}, {{Key: "locked", Value: "token"}}, unfolded(set),
		{{Key: "locked", Value: ""}, unfolded(set)[1]},
		{{Key: "locked", Value: "token"}, {Key: "held", Value: bson.D{{Key: "holder", Value: 1}}}, {Key: "result", Value: "x"}},
	} {
		raw, err := bson.Marshal(seed)
		require.NoError(f, err)
		f.Add([]byte(raw)) //nolint:unconvert // a fuzz target takes nothing but []byte
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		raw := bson.Raw(data)
		if raw.Validate() != nil {
			t.Skip("the driver gives us documents only")
		}
		doc := readDocument("nightly", raw)
		_ = remote.DecodeResult("nightly", resultIn(raw))
		if doc.free() {
			return
		}
		record := doc.record()
		require.Equal(t, "nightly", record.Name)
		require.NotEqual(t, record.Foreign == "", record.Token == "")
		if record.Foreign == "" {
			require.Positive(t, record.TTL)
			require.NotEmpty(t, record.Holder.Host)
		}
	})
}

// unfolded returns the document that an update with dotted names creates.
func unfolded(set bson.D) bson.D {
	var top, below bson.D
	for _, e := range set {
		if len(e.Key) > len(heldField) && e.Key[:len(heldField)+1] == heldField+"." {
			below = append(below, bson.E{Key: e.Key[len(heldField)+1:], Value: e.Value})
			continue
		}
		top = append(top, e)
	}
	return append(top, bson.E{Key: heldField, Value: below})
}

func TestClaimComesBack(t *testing.T) {
	claim := source.Claim{
		Holder: source.Holder{
			Identity: process.Identity{Host: "h1", Machine: "m", Boot: "b", Namespace: "n", PID: 7, Start: 1 << 50}, User: "ada", Command: "rsync $x",
		},
		TTL: time.Minute, Heartbeat: time.Second, Job: true,
	}
	set, err := claimed("token", claim)
	require.NoError(t, err)
	raw, err := bson.Marshal(unfolded(set))
	require.NoError(t, err)
	record := readDocument("nightly", raw).record()
	require.Empty(t, record.Foreign)
	require.Equal(t, claim, record.Claim)
	require.Equal(t, "token", record.Token)
}

// A page of the history returns no more events than it has, and a register a value with a number,
// whatever program wrote the document.
func FuzzPage(f *testing.F) {
	add := func(doc bson.D) {
		raw, err := bson.Marshal(doc)
		require.NoError(f, err)
		f.Add([]byte(raw), 1) //nolint:unconvert // a fuzz target takes nothing but []byte
	}
	event := bson.D{{Key: "time", Value: "2026-03-01T12:00:00Z"}, {Key: "event", Value: "broke"}, {Key: "name", Value: "a"}}
	add(bson.D{{Key: idField, Value: "g\x000000000001"}, {Key: countField, Value: int64(2)}, {Key: eventsField, Value: bson.A{event, event}}})
	add(bson.D{{Key: idField, Value: 1}, {Key: countField, Value: int64(-1)}, {Key: eventsField, Value: bson.A{1, bson.D{}, "x", event}}})
	add(bson.D{{Key: idField, Value: "a"}, {Key: countField, Value: int64(1) << 62}, {Key: valueField, Value: []byte("x")}})
	f.Fuzz(func(t *testing.T, data []byte, read int) {
		raw := bson.Raw(data)
		if raw.Validate() != nil || read < 0 {
			t.Skip("the driver gives us documents only")
		}
		page := readPage(raw)
		since := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		events := page.since(read, since)
		require.LessOrEqual(t, len(events), max(len(page.events)-read, 0))
		for _, e := range events {
			require.False(t, e.Time.Before(since))
		}
		server := &server{}
		value, n, err := (&Register{server: server, name: "a"}).content(raw)
		if err == nil {
			require.NotNil(t, value)
			require.Positive(t, n)
		}
	})
}
