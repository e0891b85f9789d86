package main_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A page is nothing for a terminal.
func TestReportOnATerminal(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	_, r := onTerminal(t, s.command("report"))
	r.Expect("write it to a file with -o FILE")
	require.Equal(t, 125, r.wait().code)
	_, r = onTerminal(t, s.command("report", "--json"))
	r.Expect(`"jobs": []`)
	require.Zero(t, r.wait().code)
}

// Output that is not kept as a whole is reported like a failure, with the log.
func TestReportOfLostOutput(t *testing.T) {
	t.Parallel()
	s, logs := newStation(t), fullLogs(t, "a")
	require.Equal(t, 1, s.run("batch", "-q", "--logs", logs, s.list("a\techo a lot", "b\techo fine")).code)
	v := s.report("--logs", logs)
	require.Equal(t, []int{2, 2, 1}, []int{v.Summary.Jobs, v.Summary.Done, v.Summary.Incomplete})
	require.Equal(t, "done", v.Jobs[0].State)
	require.Contains(t, v.Jobs[0].Output, "no space left")
	require.Equal(t, filepath.Join(logs, "a.log"), v.Jobs[0].Log)
	require.Empty(t, v.Jobs[1].Output)
	require.Contains(t, s.run("report", "--logs", logs, "-o", filepath.Join(t.TempDir(), "page.html")).stdout, "2 jobs, 2 done, 1 with incomplete output\n")
	require.Contains(t, s.must("report"), "its output is not complete: ")
}
