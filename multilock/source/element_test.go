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
