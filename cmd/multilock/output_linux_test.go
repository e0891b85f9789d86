package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// fullLogs returns a directory for logs in which a job's log is on a full disk.
func fullLogs(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Symlink("/dev/full", filepath.Join(dir, name+".log")))
	return dir
}

// A job whose output was lost is done, and does not run again. But the batch reports a problem, now and
// later, until the job is run again on request.
func TestLostOutput(t *testing.T) {
	t.Parallel()
	s, logs := newStation(t), fullLogs(t, "a")
	list := s.list("a\techo ran >>"+filepath.Join(logs, "ran")+"; echo a lot", "b\techo fine")
	args := []string{"batch", "--logs", logs, "--retries", "3", list}
	for _, summary := range []string{
		"2 jobs: 2 done, 1 with incomplete output, 2 run here, in ", "2 jobs: 2 done, 1 with incomplete output, 2 ended earlier, in ",
	} {
		got := s.run(args...)
		require.Equal(t, 1, got.code, got.stderr)
		require.Contains(t, got.stdout, summary)
		require.Regexp(t, `job "a" is done, but its output is not complete: write .*: no space left on device; to run it again: multilock .*clean --results a`, got.stderr)
		require.NotContains(t, got.stderr, `"b"`)
	}
	require.Contains(t, s.result("a").OutputLost, "no space left")
	require.Empty(t, s.result("b").OutputLost)

	lax := s.run(append([]string{"batch", "--output", "best-effort"}, args[1:]...)...)
	require.Zero(t, lax.code, lax.stderr)
	require.Contains(t, lax.stderr, `warning: job "a" is done, but its output is not complete`)

	require.NoError(t, os.Remove(filepath.Join(logs, "a.log")))
	s.must("clean", "--results", "a")
	again := s.run(args...)
	require.Zero(t, again.code, again.stderr)
	ran, err := os.ReadFile(filepath.Join(logs, "ran"))
	require.NoError(t, err)
	require.Equal(t, "ran\nran\n", string(ran))
}

// A barrier after such a batch reports the same.
func TestLostOutputAtABarrier(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	require.Equal(t, 1, s.run("batch", "--logs", fullLogs(t, "a"), s.list("a\techo a lot", "b\ttrue")).code)
	for _, of := range [][]string{{"--expect", "2"}, {"--members", "a,b"}} {
		got := s.run(append([]string{"wait", "--json"}, of...)...)
		require.Equal(t, 1, got.code)
		var v struct {
			Open, OK   bool
			OutputLost []struct {
				Name    string
				Because string `json:"output_lost_because"`
			} `json:"output_lost"`
		}
		require.NoError(t, json.Unmarshal([]byte(got.stdout), &v))
		require.True(t, v.Open)
		require.False(t, v.OK)
		require.Equal(t, "a", v.OutputLost[0].Name)
		require.Contains(t, v.OutputLost[0].Because, "no space left")

		got = s.run(append([]string{"wait", "--output", "best-effort"}, of...)...)
		require.Zero(t, got.code, got.stderr)
		require.Contains(t, got.stderr, `warning: job "a" is done, but its output is not complete`)
	}
}

// Another host, which receives it as an update, reports it, too; and so it does with a failure.
func TestLostOutputOfAnotherHost(t *testing.T) {
	t.Parallel()
	s, logs, ready := newStation(t), fullLogs(t, "a"), filepath.Join(t.TempDir(), "ready")
	list := s.list("a\techo a lot", "b\ttouch "+ready+"; until test -e "+ready+".go; do sleep 0.01; done", "c\tuntil test -e "+ready+"; do sleep 0.01; done; echo; exit 3")
	require.NoError(t, os.Symlink("/dev/full", filepath.Join(logs, "c.log")))
	other := s.start("batch", "-j3", "--logs", logs, list)
	s.eventually("another host works", func() bool { _, err := os.Stat(ready); return err == nil })
	here := s.start("batch", "-j1", "--logs", logs, list)
	s.eventually("two jobs have ended", func() bool { return s.result("a").State == "done" && s.result("c").State == "failed" })
	require.NoError(t, os.WriteFile(ready+".go", nil, 0o600))
	for _, r := range []*running{other, here} {
		got := r.wait()
		require.Equal(t, 1, got.code)
		require.Contains(t, got.stdout, "3 jobs: 2 done, 1 failed, 1 with incomplete output")
		require.Regexp(t, `job "c" failed with exit code 3 on .*; its output is not complete: `, got.stderr)
	}
}

// A page is not written to a terminal.
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

// Incomplete output is reported like a failure, with the log.
func TestReportOfLostOutput(t *testing.T) {
	t.Parallel()
	s, logs := newStation(t), fullLogs(t, "a")
	require.Equal(t, 1, s.run("batch", "-q", "--logs", logs, s.list("a\techo a lot", "b\techo fine")).code)
	v := s.report("--logs", logs)
	require.Equal(t, []int{2, 2, 1}, []int{v.Summary.Total, v.Summary.Done, v.Summary.OutputLost})
	require.Equal(t, "done", v.Jobs[0].State)
	require.Contains(t, v.Jobs[0].OutputLost, "no space left")
	require.Equal(t, filepath.Join(logs, "a.log"), v.Jobs[0].Log)
	require.Empty(t, v.Jobs[1].OutputLost)
	require.Contains(t, s.run("report", "--logs", logs, "-o", filepath.Join(t.TempDir(), "page.html")).stdout, "2 jobs, 2 done, 1 with incomplete output\n")
	require.Contains(t, s.must("report"), "its output is not complete: ")
}
