//go:build unix

package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// reportView is what the tests read of "report --json".
type reportView struct {
	Title   string
	Missing []string
	Summary struct{ Jobs, Done, Failed, Retry, Running, Other, Runs, Incomplete int }
	Hosts   []struct{ Host string }
	Jobs    []struct {
		Name, State, Log, Why, Output string
		Runs                          []struct {
			State, Host string
			Attempt     int
			Exit        *int
			Broken      struct{ Why string }
		}
	}
}

func (s *station) report(args ...string) (v reportView) {
	s.t.Helper()
	require.NoError(s.t, json.Unmarshal([]byte(s.must(append([]string{"report", "--json"}, args...)...)), &v))
	return v
}

// reported is a group in which all kinds of things happened.
func reported(t *testing.T) *station {
	t.Helper()
	s := newStation(t)
	list := s.list("good\ttrue", "bad\techo oops; exit 3", "flaky\ttest $MULTILOCK_ATTEMPT = 2")
	require.Equal(t, 1, s.run("batch", "-q", "--retries", "1", list).code)
	s.must("run", "-n", "plain", "--", "true")
	require.Equal(t, 127, s.run("run", "-n", "gone", "--", "/nonexistent").code)
	return s
}

func TestReportTells(t *testing.T) {
	t.Parallel()
	s := reported(t)
	s.hold("held")
	v := s.report("--title", "night run")
	require.Equal(t, "night run", v.Title)
	require.Empty(t, v.Missing)
	sum := v.Summary
	require.Equal(t, []int{6, 3, 2, 0, 1, 0, 8}, []int{sum.Jobs, sum.Done, sum.Failed, sum.Retry, sum.Running, sum.Other, sum.Runs})
	require.Len(t, v.Hosts, 1)
	states := map[string]string{}
	for _, job := range v.Jobs {
		states[job.Name] = job.State
	}
	require.Equal(t, map[string]string{"good": "done", "bad": "failed", "flaky": "done", "plain": "done", "gone": "failed", "held": "running"}, states)
	bad := v.Jobs[0]
	require.Len(t, bad.Runs, 2)
	for i, run := range bad.Runs {
		require.Equal(t, i+1, run.Attempt)
		require.Equal(t, 3, *run.Exit)
	}
	require.Equal(t, "multilock -d "+s.base+" logs bad", bad.Log)
	require.Contains(t, s.script("sh", "exec "+bad.Log).stdout, "oops")
}

// A job whose history was lost is shown by its result, and one whose result cannot
// be read is shown as what it is.
func TestReportWithoutHistory(t *testing.T) {
	t.Parallel()
	s := reported(t)
	private := filepath.Join(s.base, ".multilock", "groups")
	files, err := filepath.Glob(filepath.Join(private, "*", "history"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.NoError(t, os.RemoveAll(files[0]))
	v := s.report()
	require.Equal(t, []int{3, 2, 1}, []int{v.Summary.Jobs, v.Summary.Done, v.Summary.Failed})
	require.Equal(t, []any{"bad", "failed", 2}, []any{v.Jobs[0].Name, v.Jobs[0].State, v.Jobs[0].Runs[len(v.Jobs[0].Runs)-1].Attempt})

	results, err := filepath.Glob(filepath.Join(private, "*", "done", lockOf(1)))
	require.NoError(t, err)
	require.Len(t, results, 1)
	require.NoError(t, os.WriteFile(results[0], []byte("{torn"), 0o600))
	v = s.report()
	require.Equal(t, []string{lockOf(1), "unknown"}, []string{v.Jobs[0].Name, v.Jobs[0].State})
	require.NotEmpty(t, v.Jobs[0].Why)
}

func TestReportSince(t *testing.T) {
	t.Parallel()
	s := reported(t)
	require.Equal(t, 5, s.report("--since", "1h").Summary.Jobs)
	require.Zero(t, s.report("--since", "0").Summary.Jobs)
}

// A reader of the file finds the old page or the new one, and no leftovers.
func TestReportReplacesItsFile(t *testing.T) {
	t.Parallel()
	s := reported(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "page.html")
	require.Equal(t, file+": 5 jobs, 3 done, 2 failed\n", s.must("report", "-o", file))
	first, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(first), "</html>")

	// A limit on the size of files stands for a file system that is full.
	got := s.script("sh", "ulimit -f 4; exec multilock report -o "+file)
	require.Equal(t, 125, got.code)
	require.Contains(t, got.stderr, "write the report: ")
	after, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, first, after)
	require.Equal(t, []string{"page.html"}, entriesOf(t, dir))
	got = s.run("report", "-o", "/nonexistent/page.html")
	require.Equal(t, 125, got.code)
	require.Contains(t, got.stderr, "write the report: ")

	link := filepath.Join(dir, "link.html")
	require.NoError(t, os.Symlink("page.html", link))
	require.Empty(t, s.must("report", "-q", "--title", "through a link", "-o", link))
	after, err = os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(after), "<title>through a link</title>")
	require.Equal(t, []string{"link.html", "page.html"}, entriesOf(t, dir))
}

func entriesOf(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestReportToStandardOutput(t *testing.T) {
	t.Parallel()
	s := reported(t)
	for _, args := range [][]string{{"report"}, {"report", "-o", "-"}, {"report", "-o", "/dev/stdout"}} {
		got := s.run(args...)
		require.Zero(t, got.code, got.stderr)
		require.Regexp(t, `^<!DOCTYPE html>`, got.stdout)
		require.Contains(t, got.stdout, "</html>")
	}
	got := s.script("sh", "multilock report >/dev/full")
	require.Equal(t, 125, got.code)
	require.Contains(t, got.stderr, "no space left on device")
}

func TestReportOfAnEmptyGroup(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	got := s.run("report", "-g", "none")
	require.Zero(t, got.code)
	require.Contains(t, got.stdout, "Nothing has happened in this group")
	require.Contains(t, got.stderr, `nothing has happened in group "none" of `+s.base)
	require.Empty(t, s.run("report", "-q", "-g", "none").stderr)
	s.requireUntouched()
}
