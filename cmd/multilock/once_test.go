//go:build unix

package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// counting returns a job that records each of its runs in a file, and ends as given.
func (s *station) counting(end string) []string {
	return []string{"--", "sh", "-c", `echo "$MULTILOCK_ATTEMPT" >>"$0"; ` + end, filepath.Join(s.base, "runs")}
}

// attempts returns the attempt numbers in the job's environment, for each run.
func (s *station) attempts() []string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.base, "runs"))
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(s.t, err)
	return strings.Fields(string(text))
}

func (s *station) once(options []string, end string) ended {
	s.t.Helper()
	return s.run(append(append([]string{"run", "-n", "x"}, options...), s.counting(end)...)...)
}

// Result is the part of a result in the JSON of status that the tests read.
type Result struct {
	Name, State, Signal, Why, Token, Host, User, Command string
	OutputLost                                           string `json:"output_lost_because"`
	Exit, Attempt                                        int
}

func (s *station) result(name string) Result {
	s.t.Helper()
	var report struct{ Results struct{ Jobs []Result } }
	require.NoError(s.t, json.Unmarshal([]byte(s.run("status", "--json", name).stdout), &report))
	if len(report.Results.Jobs) == 0 {
		return Result{}
	}
	return report.Results.Jobs[0]
}

func TestOnce(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	require.Equal(t, ended{0, "", ""}, s.once([]string{"--once"}, "true"))
	got := s.once([]string{"--once"}, "exit 9")
	require.Zero(t, got.code)
	require.Regexp(t, `^multilock: job "x" already ran: success on \S+ pid \d+ by \S+ at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\n$`, got.stderr)
	require.Equal(t, ended{0, "", ""}, s.once([]string{"--once", "-q"}, "exit 9"))
	require.Equal(t, []string{"1"}, s.attempts())

	s.must(append([]string{"run", "-n", "y", "--once"}, s.counting("true")...)...)
	require.Len(t, s.attempts(), 2, "another name is another job")
	events := s.history("x")
	require.Equal(t, []string{"acquired", "recorded", "released"}, happened(events))
	require.Contains(t, s.must("history", "x"), "attempt 1, exit 0")
	require.Equal(t, events[0].Token, s.result("x").Token)
}

// After a job has failed, further runs end like it, until its result is deleted with the command in the
// message.
func TestOnceFailed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  string
		code int
		how  string
	}{
		"exit code":                {"exit 3", 3, "exit 3"},
		"a code that is ours, too": {"exit 121", 121, "exit 121"},
		"signal":                   {"kill -KILL $$", 137, "signal: killed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStation(t)
			require.Equal(t, ended{c.code, "", ""}, s.once([]string{"--once"}, c.end))
			got := s.once([]string{"--once"}, "true")
			require.Equal(t, c.code, got.code)
			require.Contains(t, got.stderr, "failed permanently: "+c.how+" on ")
			require.Equal(t, []string{"1"}, s.attempts())

			_, command, found := strings.Cut(strings.TrimSpace(got.stderr), "to run it again: ")
			require.True(t, found)
			require.Equal(t, ended{0, "deleted the result of x\n", ""}, s.script("sh", command))
			require.Equal(t, ended{0, "", ""}, s.once([]string{"--once"}, "true"))
			require.Equal(t, []string{"1", "1"}, s.attempts())
		})
	}
}

func TestRetries(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	got := s.once([]string{"--once", "--retries", "2"}, `exit "$MULTILOCK_ATTEMPT"`)
	require.Equal(t, 3, got.code)
	require.Contains(t, got.stderr, `job "x" failed (exit 1); trying again, attempt 2 of 3`)
	require.Equal(t, 3, s.once([]string{"--once", "--retries", "2"}, "true").code)
	require.Equal(t, []string{"1", "2", "3"}, s.attempts())
	require.Equal(t, []string{"acquired", "recorded", "recorded", "recorded", "released"}, happened(s.history("x")))

	s.must("clean", "--results")
	got = s.once([]string{"--once", "--retries", "5", "-q"}, `test "$MULTILOCK_ATTEMPT" = 2`)
	require.Equal(t, ended{0, "", ""}, got)
	require.Equal(t, []string{"1", "2", "3", "1", "2"}, s.attempts())
}

// A job that was not started, or that was terminated together with the runner, has no result.
func TestNotRecorded(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	for range 2 {
		got := s.run("run", "-n", "x", "--once", "--", "/nonexistent/program")
		require.Equal(t, 127, got.code)
	}
	job := s.hold("x", "--once", "--retries", "3")
	job.Signal(syscall.SIGTERM)
	got := job.wait()
	require.Equal(t, 143, got.code)
	require.Contains(t, got.stderr, "was terminated; no result is recorded, so it will run again")
	require.Equal(t, Result{}, s.result("x"))
	require.Equal(t, "ready\n", s.hold("x", "--once").end().stdout)
	require.Equal(t, "done", s.result("x").State)
}

// A job that exceeds its time limit has failed.
func TestOnceOutOfTime(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	options := []string{"--once", "--max-runtime", "50ms"}
	require.Equal(t, 124, s.once(options, "exec sleep 1000").code)
	require.Equal(t, 124, s.once(options, "true").code, "as the first time")
	require.Contains(t, s.result("x").Why, "longer than --max-runtime")
}

// If the lock is lost while the job runs, nothing is recorded.
func TestOnceLost(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	job := s.hold("x", "--once", "--ttl", "3s")
	s.must("break", "x", "--force", "--now")
	got := job.wait()
	require.Equal(t, 122, got.code)
	require.NotContains(t, got.stderr, "recorded", "that is clear")
	require.Equal(t, Result{}, s.result("x"))
	require.Equal(t, ended{0, "", ""}, s.once([]string{"--once"}, "true"))
}

// If a success cannot be recorded, the job is not done, and does not run again under the same lock.
func TestResultThatCannotBeRecorded(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	done := filepath.Join(s.base, ".multilock/groups/.locks/done")
	got := s.once([]string{"--once", "--retries", "3"}, "rm -rf "+done+" && touch "+done)
	require.Equal(t, 125, got.code, got.stderr)
	require.Contains(t, got.stderr, `job "x" ended (success), but its result could not be recorded, so it will run again`)
	require.Equal(t, []string{"1"}, s.attempts())
	require.NoError(t, os.Remove(done))
	require.Equal(t, ended{0, "", ""}, s.once([]string{"--once"}, "true"))
}

// After the result is recorded, the loss of the lock does not matter.
func TestLostAfterTheResult(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	job := s.start("run", "-n", "x", "--once", "--ttl", "3s", "--min-hold", "1h", "--", "sh", "-c", "exit 7")
	s.eventually("the result is recorded", func() bool { return s.result("x").State == "failed" })
	require.Equal(t, "held", s.lock("x").State)
	s.must("break", "x", "--force", "--now")
	got := job.wait()
	require.Equal(t, 7, got.code)
	require.Contains(t, got.stderr, "the job's result was recorded before")
}

func TestEvery(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	const rarely = "10000d" // so that no other tick comes during a test
	require.Equal(t, ended{0, "", ""}, s.once([]string{"--every", rarely}, "true"))
	got := s.once([]string{"--every", rarely}, "true")
	require.Zero(t, got.code)
	require.Regexp(t, `^multilock: job "x" already ran for its tick of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC: success on `, got.stderr)
	require.Equal(t, []string{"1"}, s.attempts())
}

func TestOnceJSON(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	report := jsonLine(t, s.once([]string{"--once", "--json"}, "true").stderr)
	require.InDelta(t, 1, report["attempt"], 0)
	require.Equal(t, true, report["ran"])
	again := jsonLine(t, s.once([]string{"--once", "--json"}, "true").stderr)
	require.Equal(t, false, again["ran"])
	require.InDelta(t, 0, again["exit"], 0)
	require.Equal(t, report["token"], again["result"].(map[string]any)["token"])
}

// spoil replaces a result by any bytes.
func (s *station) spoil(name, content string) {
	s.t.Helper()
	dir := filepath.Join(s.base, ".multilock", "groups", ".locks", "done")
	require.NoError(s.t, os.MkdirAll(dir, 0o700))
	require.NoError(s.t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
}

// An unreadable result counts as run, with an unknown outcome.
func TestOnceWithATornResult(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.spoil("x", `{"v":1,"name":"x","ex`)
	for _, options := range [][]string{{"--once"}, {"--every", "1h"}} {
		got := s.once(options, "true")
		require.Equal(t, 123, got.code)
		require.Contains(t, got.stderr, "counts as run, and how it ended is not known")
		require.Contains(t, got.stderr, "it is truncated")
		require.Contains(t, got.stderr, "clean --results x")
	}
	require.Empty(t, s.attempts())
	require.Equal(t, "unknown", s.result("x").State)
	status := s.run("status")
	require.Zero(t, status.code, "nothing is unclear about the locks")
	require.Regexp(t, `^multilock: warning: how x ended cannot be read: .*it is truncated`, status.stderr)
	s.must("clean", "--results", "x")
	require.Equal(t, ended{0, "", ""}, s.once([]string{"--once"}, "true"))
}
