package nfs_test

import (
	"errors"
	"io"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/fslock"
)

// A host that has read a list to its end sees at once that another host has appended to it, or
// withdrawn an addition, whatever names the client has cached.
// Rule: add, stale-names
func TestListThatGrows(t *testing.T) {
	eachVersion(t, func(t *testing.T, h host, others []host) {
		p := newPlace(t)
		here, there := p.source(t, h), p.source(t, others[0])
		published(t, here, "one\n", "one\n")
		requireSections(t, here, "one\n")
		requireSections(t, there, "one\n")
		requireGrows(t, there, true, "two\n", "one\n")
		requireSections(t, here, "one\n", "two\n")
		requireGrows(t, there, true, "three\n", "one\n", "two\n")
		requireGrows(t, here, false, "another\n", "one\n", "two\n")
		requireSections(t, here, "one\n", "two\n", "three\n")
		requireGrows(t, here, true, "four\n", "one\n", "two\n", "three\n")
		manifest, err := there.OpenManifest(within(t))
		require.NoError(t, err)
		text, err := io.ReadAll(manifest)
		require.NoError(t, errors.Join(err, manifest.Close()))
		require.Equal(t, "one\ntwo\nthree\nfour\n", string(text))

		require.NoError(t, there.Retract(within(t)))
		requireGrows(t, here, false, "five\n", "one\n", "two\n", "three\n", "four\n")
		_, err = here.Sections(within(t), 100)
		require.ErrorIs(t, err, fs.ErrNotExist)
		published(t, there, "new\n", "new\n")
		requireGrows(t, here, false, "five\n", "one\n", "two\n", "three\n", "four\n")
		requireSections(t, here, "new\n")
	})
}

func published(t *testing.T, src *fslock.Source, list, current string) {
	t.Helper()
	got, err := src.Publish(within(t), []byte(list))
	require.NoError(t, err)
	require.Equal(t, current, string(got))
}

func requireGrows(t *testing.T, src *fslock.Source, want bool, more string, known ...string) {
	t.Helper()
	grown, err := src.Continue(within(t), sections(known), []byte(more))
	require.NoError(t, err)
	require.Equal(t, want, grown)
}

func requireSections(t *testing.T, src *fslock.Source, want ...string) {
	t.Helper()
	got, err := src.Sections(within(t), 100)
	require.NoError(t, err)
	require.Equal(t, sections(want), got)
}

func sections(texts []string) (sections [][]byte) {
	for _, text := range texts {
		sections = append(sections, []byte(text))
	}
	return sections
}
