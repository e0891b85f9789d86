//go:build unix

package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Four of sixty jobs have failed: three commands are corrected, one job is removed, and two jobs are added.
// Successful jobs do not run again.
func TestBatchReplacesAList(t *testing.T) {
	t.Parallel()
	s, ran := newStation(t), filepath.Join(t.TempDir(), "ran")
	lines := func(memory string) (all []string) {
		for n := range 60 {
			command := fmt.Sprintf("echo %02d >>%s", n, ran)
			if n%15 == 7 {
				command = "M=" + memory + "; " + command + "; echo $M; test $M = large"
			}
			all = append(all, fmt.Sprintf("job%02d\t%s", n, command))
		}
		return all
	}
	old := s.list(lines("small")...)
	require.Equal(t, 1, s.run("batch", "-j4", old).code)
	fixed := lines("large")
	fixed = append(append([]string{"new1\ttrue"}, fixed[:52]...), append(fixed[53:], "new2\ttrue")...)
	list := s.list(fixed...)
	got := s.run("batch", "-j4", list)
	require.Equal(t, 125, got.code)
	require.Contains(t, got.stderr, "use --replace")

	const changes = "3 commands changed, 2 jobs added, 1 removed, 56 unchanged"
	before := s.must("logs", "--joblog")
	got = s.run("batch", "-j4", "--replace", "--dry-run", list)
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stderr, "list would be replaced: "+changes)
	for _, row := range []string{`job00 +done`, `job07 +would run, changed`, `job52 +would be removed`, `new1 +would run `} {
		require.Regexp(t, row, got.stdout)
	}
	require.Equal(t, before, s.must("logs", "--joblog"), "nothing was changed")
	got = s.run("batch", "-j4", "--replace", list)
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stderr, "list replaced: "+changes)
	require.Regexp(t, `^61 jobs: 61 done, 56 ended earlier, 5 run here, `, got.stdout)
	require.Regexp(t, "(?s)^small.*attempt 1.*large\n$", s.logOf("job22"))
	text, err := os.ReadFile(ran)
	require.NoError(t, err)
	require.Len(t, strings.Fields(string(text)), 63)

	got = s.run("batch", old)
	require.Equal(t, 125, got.code)
	require.Contains(t, got.stderr, `job 8 is "job07\tM=large; echo 07`)
	for _, again := range [][]string{{"batch", list}, {"batch", "--replace", list}} {
		require.Contains(t, s.must(again...), "61 jobs: 61 done, 61 ended earlier")
	}
	require.Contains(t, s.must("status"), "61 of 61 jobs")
	require.Contains(t, s.must("status", "--results"), "M=large")
	require.NotContains(t, s.must("status", "--results"), "job52")
	require.NotContains(t, s.must("logs", "--joblog"), "echo 52")
	s.must("wait", "--list", "--wait", "1m")
}

// The command of a job that is done changes only with --redo.
func TestBatchReplacesWhatIsDone(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.must("batch", "-j1", s.list("echo a", "echo b", "echo c"))
	list := s.list("echo a", "echo other", "echo c")
	for _, dry := range []string{"--dry-run", "--quiet"} {
		got := s.run("batch", "--replace", dry, list)
		require.Equal(t, 125, got.code)
		require.Contains(t, got.stderr, `jobs that are done: ["2"]; --redo NAME`)
	}
	got := s.run("batch", "--replace", "--redo", "2", "--redo", "3", list)
	require.Contains(t, got.stderr, "list replaced: 1 command changed, 2 to run again, 2 unchanged")
	require.Contains(t, got.stdout, "3 done, 1 ended earlier, 2 run here")
	require.Equal(t, 125, s.run("batch", "--replace", "--redo", "4", list).code)
	require.Contains(t, s.run("batch", "--redo", "2", list).stderr, "needs --replace")
	require.Contains(t, s.run("batch", "--add", "--replace", list).stderr, "cannot be used together")
	longer := make([]string, 12)
	for i := range longer {
		longer[i] = []string{"echo a", "echo other", "echo c", "echo more"}[min(i, 3)]
	}
	got = s.run("batch", "--replace", s.list(longer...))
	require.Contains(t, got.stderr, "list replaced: 9 jobs added, 3 unchanged", "names keep their width")
	require.Contains(t, s.must("status", "12"), "done")
}

// A working host adopts jobs that another host adds or changes. Its running jobs do not change.
func TestBatchTakesUpChanges(t *testing.T) {
	t.Parallel()
	s, proceed := newStation(t), filepath.Join(t.TempDir(), "proceed")
	lines := []string{"a\ttrue", "b\tuntil test -e " + proceed + "; do sleep 0.1; done", "c\techo old"}
	alpha := s.start("batch", "-j1", s.list(lines...))
	s.eventually("the first job is done", func() bool { return strings.Contains(s.run("status", "a").stdout, "done") })
	s.eventually("the second one runs", func() bool { return strings.Contains(s.run("status", "b").stdout, "held") })
	lines[2] = "c\techo new"
	replaced := s.run("batch", "--replace", "--wait", "1m", "--halt", "soon,done=1", s.list(lines...))
	require.Contains(t, replaced.stderr, "list replaced: 1 command changed, 2 unchanged")
	other := append([]string{lines[0], "b\techo other"}, lines[2:]...)
	got := s.run("batch", "--replace", s.list(other...))
	require.Equal(t, 125, got.code)
	require.Contains(t, got.stderr, `job "b" cannot be changed now: the lock of job 2 is held by `)
	require.Equal(t, 125, s.run("batch", "--wait", "1m", s.list(lines...)).code)
	lines = append(lines, "d\techo added")
	s.run("batch", "--add", "--halt", "soon,done=1", s.list(lines...))
	require.NoError(t, os.WriteFile(proceed, nil, 0o600))
	end := alpha.wait()
	require.Zero(t, end.code, end.stderr)
	require.Regexp(t, `^4 jobs: 4 done, 4 run here, `, end.stdout)
	require.Equal(t, "new\n", s.logOf("c"))
	require.Equal(t, "added\n", s.logOf("d"))
}
