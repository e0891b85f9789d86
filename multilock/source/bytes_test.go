package source_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/source"
)

func FuzzEncodeName(f *testing.F) {
	for _, name := range []string{"", "plain", "caf\xe9", "\xe0\xe1", "café", "\U0010FFE9", "\ufffd", "\xed\xb3\xa9", "\xf4\x8f\xbf", "a\xffb\x80"} {
		f.Add(name, "caf\xe8")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		encoded := source.EncodeName(a)
		require.True(t, utf8.ValidString(encoded))
		require.Equal(t, a, source.DecodeName(encoded))
		require.Equal(t, a == b, encoded == source.EncodeName(b))
		text, err := json.Marshal(encoded)
		require.NoError(t, err)
		var back string
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, a, source.DecodeName(back))
	})
}
