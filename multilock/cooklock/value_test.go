package cooklock

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// A text in a register is either a valid value, which can be encoded again and shown, or belongs to
// an unknown process.
func FuzzValue(f *testing.F) {
	ours := source.Record{Name: "a", Token: "5f", Claim: source.Claim{Holder: source.Holder{Identity: process.Identity{Host: "h", PID: 7}, User: "ann", Command: "make all"}, TTL: time.Minute}}
	value, err := encodeValue(ours)
	require.NoError(f, err)
	for _, seed := range []string{
		string(value), string(value[:30]), "", "null", "{}", `{"cook":2}`, `{"cook":1,"token":"\u001b[31m","period_ms":1}`, `{"cook":1,"token":"x","period_ms":9223372036854775807}`,
		`{"cook":1,"token":"x","period_ms":60000,"command":"` + strings.Repeat("☃", MaxValue) + `"}`,
		`{"cook":1,"token":"x","period_ms":60000,"prepared":"9999-12-31T23:59:59-23:59"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		r := decodeValue("a", value)
		require.Equal(t, "a", r.Name)
		if r.Foreign != "" {
			require.Equal(t, source.Record{Name: "a", Foreign: r.Foreign}, r)
			return
		}
		require.True(t, json.Valid(value))
		require.NotEmpty(t, r.Token)
		require.Positive(t, r.TTL)
		require.LessOrEqual(t, r.TTL, source.MaxTTL)
		for _, shown := range []string{r.Token, r.Holder.Host, r.Holder.User, r.Holder.Command} {
			require.Equal(t, -1, strings.IndexFunc(shown, func(c rune) bool { return !unicode.IsPrint(c) }), "%q", shown)
		}
		again, err := encodeValue(r)
		require.NoError(t, err)
		if len(value) <= MaxValue/4 { // short enough that nothing is cut, and invalid characters have room for their replacements
			got := decodeValue("a", again)
			require.True(t, r.Prepared.Equal(got.Prepared))
			got.Prepared = r.Prepared
			require.Equal(t, r, got)
		}
	})
}
