package joblist_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/multilock/source"
)

// manifest is a group's stored list.
type manifest struct {
	source.ManifestStore
	text string
}

func (m manifest) OpenManifest(context.Context) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(m.text)), nil
}

func TestListStages(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][][]string{
		"":                   nil,
		"a\ttrue\nb\ttrue\n": {{"a", "b"}},
		"a\\nb\\\\n\ttrue\n": {{"a\nb\\n"}},
		"#chunks of 64, or a share of 8#barriers after 1 3#needs x\na\t\nb\t\nc\t\nd\t\n": {{"a"}, {"b", "c"}, {"d"}},
		"#barriers after 1\na\t\n#barriers after 2\nb\t\nc\t\n":                           {{"a"}, {"b"}, {"c"}},
		"#barriers after 9 x 0\na\t\n":                                                    {{"a"}},
		"#barriers after 2\na\t\n\t\n\t\nd\t\n":                                           {{"a"}, {"d"}},
	} {
		stages, err := joblist.Stages(t.Context(), manifest{text: text})
		require.NoError(t, err)
		require.Equal(t, want, stages, "%q", text)
	}
}
