package batch

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/source"
)

// Two lists of jobs are equal if their manifests are, and another manifest differs in a line that exists.
// Rule: manifest
func FuzzManifest(f *testing.F) {
	for _, text := range []string{"make", "a\nb", `a\nb`, "\\", "", "a\tb", "\x00", "\r\n"} {
		f.Add("a", text, "a", text+"x", []byte("a\t"+text))
		f.Add("a", text, text, "a", []byte("\n\n"))
	}
	f.Fuzz(func(t *testing.T, name, command, otherName, otherCommand string, theirs []byte) {
		if strings.ContainsAny(name+otherName, "\t\n") {
			return // no list has such a name
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

// A list that was read is encoded to an equal list, and its chunks cover it.
// Rule: replace
func FuzzList(f *testing.F) {
	l := &list{jobs: []Job{{Name: "a", Command: "x\ny"}, {}, {Name: `b\n`, Command: "\t"}}, barriers: []int{2}, needs: []Needs{{From: 2, CPUs: 3, Memory: 1 << 40}}, shell: "bash -e", ends: []int{1, 3}}
	f.Add(l.encode(), []byte(chunkedHead+"\nc\tmake\n"))
	f.Add([]byte(chunkedHead+"#barriers after 1\na\t\nb\t\n"), []byte(chunkedHead+"#shell x\n"))
	f.Add([]byte(source.Whole+chunkedHead+"#sections after 9 -1\na\t\n"), []byte("#needs from 9 cpus=-1"))
	f.Fuzz(func(t *testing.T, first, more []byte) {
		l, err := readList([][]byte{first, more})
		if err != nil {
			return
		}
		again, err := readList([][]byte{first, l.encode()})
		require.NoError(t, err)
		require.True(t, l.same(again))
		require.Equal(t, l.shell, again.shell)
		s := newStages(len(l.jobs), l.barriers)
		units := s.divided(l.ends)
		require.Equal(t, units, s.divided(again.ends))
		next := 1
		for _, u := range units {
			require.Equal(t, next, u.From)
			next = u.To + 1
		}
		require.Equal(t, len(l.jobs)+1, next)
	})
}
