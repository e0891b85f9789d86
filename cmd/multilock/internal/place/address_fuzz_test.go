package place

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A URL that is encoded and parsed again is equal, and its displayed form has no password, wherever that
// ends.
func FuzzAddress(f *testing.F) {
	for _, text := range []string{
		"mongodb+srv://ada:t:o:p@host/db.coll?tls=true#x", "cook+file:a/b?period=5m", "cook+file:////a", "x:", "x::p@", "x://:p@", "x://@h@", "x:///a@b", "x://a:1/top@h/db", "x:?;password=p", "[::1]", "",
	} {
		f.Add(text)
	}
	const secret = "s3cr3tive"
	f.Fuzz(func(t *testing.T, text string) {
		if a, ok := parseAddress(text); ok {
			again, ok := parseAddress(a.String())
			require.True(t, ok)
			a.fragment = ""
			require.Equal(t, a, again)
		}
		if strings.Contains(text, secret[:3]) {
			return
		}
		require.NotContains(t, publicURL("mongodb://ada:"+secret+"@"+text), secret[:3])
		require.NotContains(t, publicURL("mongodb://ada:"+secret+text+"@host/db.coll"), secret[:3])
	})
}
