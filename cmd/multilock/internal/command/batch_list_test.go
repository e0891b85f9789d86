//go:build unix

package command

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/internal/place"
)

// Each job of a list has a name of its own and a command, in the order of the lines; or the list
// is refused. Names of members are read from the same lines.
func FuzzBatchList(f *testing.F) {
	for _, list := range []string{
		"make a\nmake b\n", "a\tmake a\r\nb\tmake b\n", "# no job\n\n \n", "a\tx\na\ty\n", "a\t\n", "\tx\n", "x\x00y\n", "a\tx\n1\n2\n", "a\x00\x00b", strings.Repeat("true\n", 11), "BARRIER\na\tx\nBARRIER\nBARRIER\r\nBARRIER\ty\n BARRIER\nBARRIER\n", "2\ttrue\ntrue\n",
	} {
		f.Add(list, false)
		f.Add(list, true)
	}
	f.Fuzz(func(t *testing.T, text string, null bool) {
		members, err := parseMembers(strings.NewReader(text), "there")
		require.NoError(t, err)
		for _, name := range members {
			require.NotEmpty(t, strings.TrimSpace(name))
			require.NotContains(t, name, "\n")
			require.NotContains(t, name, "\t")
		}
		list, err := parseBatch(&place.Source{}, strings.NewReader(text), "there", null)
		if err != nil {
			require.ErrorContains(t, err, "there")
			return
		}
		require.NotEmpty(t, list.jobs)
		for i, after := range list.barriers {
			require.True(t, after > 0 && after < len(list.jobs) && (i == 0 || list.barriers[i-1] < after), list.barriers)
		}
		names := map[string]bool{}
		for i, job := range list.jobs {
			require.False(t, names[job.Name])
			names[job.Name] = true
			require.NotEmpty(t, strings.TrimSpace(job.Command))
			require.NotContains(t, job.Command, "\x00")
			require.True(t, i == 0 || list.line(i-1) < list.line(i))
		}
	})
}
