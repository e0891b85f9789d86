package source_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/source"
)

func TestCheckElement(t *testing.T) {
	longest := strings.Repeat("n", source.MaxElement)
	for _, name := range []string{"x", " ", "ä b", "..", longest} {
		require.NoError(t, source.CheckElement("lock name", name), "%q", name)
	}
	for name, why := range map[string]string{
		"": "must not be empty", "a/b": "must not contain a slash", "a\x00": "must not contain a NUL byte",
		"\xff": "is not valid UTF-8", longest + "n": "is 501 bytes long; at most 500 fit",
	} {
		err := source.CheckElement("lock group", name)
		require.ErrorIs(t, err, source.ErrInvalid)
		require.ErrorContains(t, err, "lock group")
		require.ErrorContains(t, err, why)
	}
}

// A name that looks like another one is rejected. Invisible characters inside of a name, and bytes
// that are not UTF-8, are allowed, because they remain distinguishable.
func TestCheckEnds(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"nightly\r", "nightly ", " nightly", "nightly\n", "\tnightly", " ", "nightly\u00a0", "\ufeffnightly", "nightly\u200b", "\x1b[31m", "x\x7f"} {
		var invalid *source.InvalidError
		require.ErrorAs(t, source.CheckEnds("lock name", name), &invalid, "%q", name)
	}
	require.EqualError(t, source.CheckEnds("lock name", "x\r"),
		`lock name "x\r": begins or ends with the invisible character '\r'; remove it (a file with CR LF at its line ends leaves one, and a variable with a space)`)
	for _, name := range []string{"nightly", "two words", "a\nb", "gr\u00fcn", "\u65e5\u672c", "\xff", "cafe\u0301", ""} {
		require.NoError(t, source.CheckEnds("lock name", name), "%q", name)
	}
}
