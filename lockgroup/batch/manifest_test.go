package batch

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Two lists of jobs are the same if their manifests are, and what is in a manifest in its place
// differs in a line that exists.
// Rule: manifest
func FuzzManifest(f *testing.F) {
	for _, text := range []string{"make", "a\nb", `a\nb`, "\\", "", "a\tb", "\x00", "\r\n"} {
		f.Add("a", text, "a", text+"x", []byte("a\t"+text))
		f.Add("a", text, text, "a", []byte("\n\n"))
	}
	f.Fuzz(func(t *testing.T, name, command, otherName, otherCommand string, theirs []byte) {
		if strings.ContainsAny(name+otherName, "\t\n") {
			return // a list has no such name
		}
		one, other := []Job{{Name: name, Command: command}}, []Job{{Name: otherName, Command: otherCommand}}
		ours := encodeManifest(nil, one)
		require.Equal(t, one[0].Name == other[0].Name && one[0].Command == other[0].Command, compareManifests(ours, encodeManifest(nil, other), 0) == nil)
		require.NoError(t, compareManifests(ours, ours, 0))
		require.Error(t, compareManifests(ours, encodeManifest(nil, append(one, other...)), 0))
		same := bytes.Equal(bytes.TrimRight(ours, "\n"), bytes.TrimRight(theirs, "\n"))
		var differs *ManifestError
		require.Equal(t, !same, errors.As(compareManifests(ours, theirs, 0), &differs))
		if !same {
			require.LessOrEqual(t, differs.Line, bytes.Count(theirs, []byte("\n"))+2)
			require.NotEqual(t, differs.Ours, differs.Theirs)
		}
	})
}
