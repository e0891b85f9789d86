//go:build unix

package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// reportView is the part of "report --json" that the tests read.
type reportView struct {
	Title      string
	Unreadable []string
	Summary    struct {
		Total, Done, Failed, Retry, Running, Other int
		RunCount                                   int `json:"run_count"`
		OutputLost                                 int `json:"output_lost_count"`
	}
	Hosts []struct{ Host string }
	Jobs  []struct {
		Name, State, Log, Why string
		OutputLost            string `json:"output_lost_because"`
		Runs                  []struct {
			State, Host string
			Attempt     int
			Exit        *int
			Broken      struct{ Why string } `json:"broken_by"`
		}
	}
}

func (s *station) report(args ...string) (v reportView) {
	s.t.Helper()
	require.NoError(s.t, json.Unmarshal([]byte(s.must(append([]string{"report", "--json"}, args...)...)), &v))
	return v
}

// reported returns a group with all kinds of events.
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
	require.Empty(t, v.Unreadable)
	sum := v.Summary
	require.Equal(t, []int{6, 3, 2, 0, 1, 0, 8}, []int{sum.Total, sum.Done, sum.Failed, sum.Retry, sum.Running, sum.Other, sum.RunCount})
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

// A job whose history was lost is shown by its result. An unreadable result is shown as such.
func TestReportWithoutHistory(t *testing.T) {
	t.Parallel()
	s := reported(t)
	private := filepath.Join(s.base, ".multilock", "groups")
	files, err := filepath.Glob(filepath.Join(private, "*", "history"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.NoError(t, os.RemoveAll(files[0]))
	v := s.report()
	require.Equal(t, []int{3, 2, 1}, []int{v.Summary.Total, v.Summary.Done, v.Summary.Failed})
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
	require.Equal(t, 5, s.report("--since", "1h").Summary.Total)
	require.Zero(t, s.report("--since", "0").Summary.Total)
}

// A reader of the file sees the old page or the new one, and no temporary files remain.
func TestReportReplacesItsFile(t *testing.T) {
	t.Parallel()
	s := reported(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "page.html")
	require.Equal(t, file+": 5 jobs, 3 done, 2 failed\n", s.must("report", "-o", file))
	first, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(first), "</html>")

	// A file size limit has the effect of a full file system.
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

// --all writes a page for each group, and an index with links to them.
func TestReportOfAllGroups(t *testing.T) {
	t.Parallel()
	s := reported(t)
	s.must("run", "-g", "a%b", "-n", "x", "--once", "--", "true")
	dir := filepath.Join(t.TempDir(), "new", "pages")
	require.Equal(t, filepath.Join(dir, "index.html")+": 2 groups\n", s.must("report", "--all", "-o", dir))
	require.ElementsMatch(t, []string{"index.html", "group-.locks.html", "group-a%25b.html"}, entriesOf(t, dir))
	index, err := os.ReadFile(filepath.Join(dir, "index.html"))
	require.NoError(t, err)
	require.NotContains(t, string(index), "<script")
	require.Contains(t, string(index), `<a href="./group-a%2525b.html"><bdi>a%b</bdi></a></td><td class="number">1</td><td class="number">1</td><td class="number">0</td>`)
	require.Contains(t, string(index), `<a href="./group-.locks.html"><bdi>.locks</bdi></a></td><td class="number">5</td><td class="number">3</td><td class="number bad">2</td>`)
	page, err := os.ReadFile(filepath.Join(dir, "group-a%25b.html"))
	require.NoError(t, err)
	require.Contains(t, string(page), `<a href="index.html">All groups</a>`)
	require.Contains(t, string(page), "<title>a%b</title>")

	require.Empty(t, s.must("report", "-q", "--all", "-o", dir), "again")
	require.Contains(t, s.run("report", "--all", "-o", "-").stderr, "name a directory")
	require.Contains(t, s.run("report", "--all").stderr, "--all needs --output")
	require.NoError(t, os.WriteFile(filepath.Join(t.TempDir(), "file"), nil, 0o600))
	got := s.run("report", "--all", "-o", filepath.Join(dir, "index.html"))
	require.Equal(t, 125, got.code)
	require.Contains(t, got.stderr, "write the reports: ")
}

// The page has the end of the output of a failed job's last attempt, wherever it is stored. A run that was
// not captured has none.
func TestReportShowsTheEndOfTheOutput(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	list := s.list("good\techo fine", "bad\t"+`echo "attempt $MULTILOCK_ATTEMPT <b>"; seq 5000; echo to stderr >&2; exit 3`)
	dir := t.TempDir()
	for name, options := range map[string][]string{
		"": nil, "--logs": {"--logs", filepath.Join(dir, "logs")}, "--results": {"--results", filepath.Join(dir, "results")},
	} {
		group := "g" + name
		got := s.run(append(append([]string{"batch", "-q", "-g", group, "--retries", "1"}, options...), list)...)
		require.Equal(t, 1, got.code, got.stderr)
		args := []string{"report", "-g", group, "-o", "-"}
		if options != nil {
			args = append(args, "--logs", options[1])
		}
		tails := regexp.MustCompile(`(?s)<pre class="tail">(.*?)</pre>`).FindAllStringSubmatch(s.must(args...), -1)
		require.Len(t, tails, 1, name)
		require.Contains(t, tails[0][1], "\n4999\n5000\n", name)
		require.Contains(t, tails[0][1], "to stderr", name)
		require.NotContains(t, tails[0][1], "attempt 1", name)
		require.Less(t, len(tails[0][1]), 8<<10, name)
	}
	s.run("run", "-g", "runs", "-n", "a", "--capture", "--", "sh", "-c", "echo '<captured>'; exit 3")
	s.run("run", "-g", "runs", "-n", "b", "--capture", "--", "sh", "-c", "echo captured before; exit 3")
	s.run("run", "-g", "runs", "-n", "b", "--", "sh", "-c", "echo not captured; exit 3")
	page := s.must("report", "-g", "runs", "-o", "-")
	require.Contains(t, page, `<pre class="tail">&lt;captured&gt;`)
	require.Equal(t, 1, strings.Count(page, `<pre class="tail">`), "that is not of the last run")
	require.Contains(t, s.must("report", "-g", "runs", "--json"), " runs logs a")
	require.Contains(t, s.run("report", "-g", "g--logs", "-o", filepath.Join(dir, "page"), "--logs", filepath.Join(dir, "absent")).stderr, "absent: no such file")
}
