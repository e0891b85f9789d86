//go:build unix

package command

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/lockgroup/batch"
)

func listIn(t *testing.T, text string, null bool) (batchList, error) {
	t.Helper()
	list, err := parseBatch(strings.NewReader(text), "there", null, listNeeds{})
	if err != nil {
		return list, err
	}
	return list, (&batchOptions{}).nameList(t.Context(), &place.Source{}, &list)
}

// Each job of a list has a name of its own and a command, in the order of the lines; or the list
// is refused. Names of members are read from the same lines.
func FuzzBatchList(f *testing.F) {
	for _, list := range []string{
		"make a\nmake b\n", "a\tmake a\r\nb\tmake b\n", "# no job\n\n \n", "a\tx\na\ty\n", "a\t\n", "\tx\n", "x\x00y\n", "a\tx\n1\n2\n", "a\x00\x00b", strings.Repeat("true\n", 11), "BARRIER\na\tx\nBARRIER\nBARRIER\r\nBARRIER\ty\n BARRIER\nBARRIER\n", "2\ttrue\ntrue\n",
		"NEEDS\na\tx\nNEEDS cpus=2\nNEEDS cpus=4 mem=1.5G\r\nb\tx\nNEEDS mem=7\n", "NEEDS cpu=2\na\tx\n", "NEEDS\tx\n NEEDS cpus=2\nNEEDS cpus=2\tx\n",
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
		list, err := listIn(t, text, null)
		if err != nil {
			require.ErrorContains(t, err, "there")
			return
		}
		require.NotEmpty(t, list.jobs)
		for i, after := range list.barriers {
			require.True(t, after > 0 && after < len(list.jobs) && (i == 0 || list.barriers[i-1] < after), list.barriers)
		}
		for i, n := range list.needs.needs {
			require.True(t, n.CPUs > 0 && n.Memory >= 0 && n.From <= len(list.jobs)+1 && (n.From == 1 || n.From > list.needs.needs[max(i, 1)-1].From || i == 0), list.needs)
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

func TestNeedsInAList(t *testing.T) {
	const text = "1st\tx\nNEEDS cpus=2\nNEEDS cpus=4 mem=1.5G\n2nd\tx\nNEEDS\tx\n NEEDS cpus=2\nBARRIER\nNEEDS\n5th\tx\nNEEDS mem=7\n"
	list, err := listIn(t, text, false)
	require.NoError(t, err)
	require.Len(t, list.jobs, 5)
	require.Equal(t, []batch.Needs{{From: 2, CPUs: 4, Memory: 3 << 29}, {From: 5, CPUs: 1}, {From: 6, CPUs: 1, Memory: 7}}, list.needs.needs)
	require.Equal(t, []int{4}, list.barriers)
	for _, wrong := range []string{"NEEDS cpu=4", "NEEDS cpus=0", "NEEDS cpus=", "NEEDS mem=8X", "NEEDS 4", "NEEDS cpus=4\tx"} {
		_, err := listIn(t, "a\tx\n"+wrong+"\nb\tx\n", false)
		require.ErrorContains(t, err, "there: line 2: ", wrong)
		require.ErrorContains(t, err, "write NEEDS cpus=4 mem=8G", wrong)
	}
	members, err := parseMembers(strings.NewReader(text), "there")
	require.NoError(t, err)
	require.Equal(t, []string{"1st", "2nd", "NEEDS", " NEEDS cpus=2", "5th"}, members)
}
