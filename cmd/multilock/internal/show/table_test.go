package show

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// No line of a table is wider than the terminal, with any content, and nothing is cut if there is room.
func TestTableFitsTheTerminal(t *testing.T) {
	t.Parallel()
	var table Table
	table.Row("NAME", "STATE", "HOST", "COMMAND", "WHY")
	table.Row("nightly", "held", "node1", "sh -c 'a long command with many words'", "its process lives: it runs on this host, as one can see")
	table.Row("夜間の仕事", "dead", "節点", "実行", strings.Repeat("理由", 40))
	table.Row("é́́", "free", "-", "-", "")
	wide := table.Lines(0)
	require.Equal(t, wide, table.Lines(1000))
	require.Len(t, wide, 4)
	require.Contains(t, wide[2], strings.Repeat("理由", 40))
	require.Equal(t, widthOf(wide[0][:strings.Index(wide[0], "HOST")]), widthOf(wide[2][:strings.Index(wide[2], "節点")]), "columns are straight")
	for columns := 1; columns < 200; columns++ {
		for _, line := range table.Lines(columns) {
			require.LessOrEqual(t, widthOf(line), columns, "%d: %q", columns, line)
		}
	}
	narrow := table.Lines(60)
	require.True(t, slices.ContainsFunc(narrow, func(l string) bool { return strings.HasPrefix(l, "    ") && strings.Contains(l, "its process lives") }), "a remark stands below: %q", narrow)
	require.Equal(t, []string{"A", "x"}, Table{"A", "x"}.Lines(20))
	require.Empty(t, Table{}.Lines(20))
}

func TestNaturalOrder(t *testing.T) {
	t.Parallel()
	want := []string{"", "1", "01", "2", "10", "a", "a1b2", "a1b10", "a02", "a002", "a2bbbbb", "a2c", "job", "job2", "job10", "job10a", "job99999999999999999999", "job100000000000000000000", "x"}
	got := slices.Clone(want)
	slices.Sort(got)
	slices.SortFunc(got, Natural)
	require.Equal(t, want, got)
	for _, a := range want {
		for _, b := range want {
			require.Equal(t, Natural(a, b), -Natural(b, a), "%q %q", a, b)
		}
	}
}
