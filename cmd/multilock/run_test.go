//go:build unix

package main_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRunPassesTheExitCodeThrough(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	unrunnable := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.WriteFile(unrunnable, []byte("x"), 0o600))
	cases := map[string]struct {
		command []string
		code    int
		stderr  string
	}{
		"success":                      {[]string{"true"}, 0, ""},
		"failure":                      {[]string{"sh", "-c", "exit 3"}, 3, ""},
		"a code that is ours, too":     {[]string{"sh", "-c", "exit 121"}, 121, ""},
		"255":                          {[]string{"sh", "-c", "exit 255"}, 255, ""},
		"a signal":                     {[]string{"sh", "-c", "kill -TERM $$"}, 143, ""},
		"SIGKILL":                      {[]string{"sh", "-c", "kill -KILL $$"}, 137, ""},
		"not there":                    {[]string{"/nonexistent/program"}, 127, "multilock: /nonexistent/program: command not found\n"},
		"not in PATH":                  {[]string{"no-such-program"}, 127, "multilock: no-such-program: command not found\n"},
		"not executable":               {[]string{unrunnable}, 126, "multilock: " + unrunnable + ": cannot be run: permission denied\n"},
		"options belong to the job":    {[]string{"sh", "-c", `test "$1" = --ttl`, "sh", "--ttl"}, 0, ""},
		"the job's own standard error": {[]string{"sh", "-c", "echo oops >&2; exit 1"}, 1, "oops\n"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &station{t, s.base}
			got := s.run(append([]string{"run", "-n", name, "--"}, c.command...)...)
			require.Equal(t, ended{c.code, "", c.stderr}, got)
			require.Equal(t, "free", s.lock(name).State)
		})
	}
}

func TestRunWithoutDashes(t *testing.T) {
	t.Parallel()
	got := newStation(t).run("run", "-n", "x", "echo", "-n", "y", "--wait")
	require.Equal(t, ended{0, "y --wait", ""}, got)
}

func TestRunGivesTheJobItsVariables(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	job := []string{"--", "sh", "-c", `echo "$MULTILOCK_NAME|$MULTILOCK_GROUP|$MULTILOCK_TOKEN|$MULTILOCK_FENCE"`}
	first := strings.Split(strings.TrimSpace(s.must(append([]string{"run", "-n", "a name", "-g", "nights"}, job...)...)), "|")
	second := strings.Split(strings.TrimSpace(s.must(append([]string{"run", "-n", "a name", "-g", "nights"}, job...)...)), "|")
	require.Equal(t, []string{"a name", "nights"}, first[:2])
	require.NotEmpty(t, first[2])
	require.NotEqual(t, first[2], second[2])
	require.Equal(t, "1", first[3])
	require.Equal(t, "2", second[3])
}

// What goes through the job's standard streams does so unchanged.
func TestRunLeavesTheStreamsAlone(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	data := bytes.Repeat([]byte("\x00\xff\x1b[31m\r\n"), 50_000)
	cmd := s.command("run", "--", "sh", "-c", "cat; printf '\\377' >&2")
	cmd.Stdin = bytes.NewReader(data)
	got := s.finish(cmd)
	require.Zero(t, got.code)
	require.Equal(t, string(data), got.stdout)
	require.Equal(t, "\xff", got.stderr)
}

func TestRunJSON(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	cases := map[string]struct {
		options []string
		command string
		want    map[string]any
	}{
		"success":        {nil, "true", map[string]any{"ran": true, "job_exit": 0.0, "exit": 0.0}},
		"failure":        {nil, "exit 4", map[string]any{"ran": true, "job_exit": 4.0, "exit": 4.0}},
		"out of time":    {[]string{"--max-runtime", "50ms"}, "exec sleep 1000", map[string]any{"ran": true, "job_exit": 143.0, "exit": 124.0}},
		"killed":         {nil, "kill -KILL $$", map[string]any{"ran": true, "job_exit": 137.0, "exit": 137.0}},
		"nothing to run": {nil, "", map[string]any{"ran": false, "job_exit": nil, "exit": 127.0}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &station{t, s.base}
			args := append([]string{"run", "--json", "-n", name}, c.options...)
			if c.command == "" {
				args = append(args, "--", "/nonexistent")
			} else {
				args = append(args, "--", "sh", "-c", c.command)
			}
			got := s.run(args...)
			require.Empty(t, got.stdout)
			report := jsonLine(t, got.stderr)
			require.InEpsilon(t, report["exit"].(float64)+1, float64(got.code)+1, 1e-9)
			require.Equal(t, name, report["name"])
			require.Equal(t, ".locks", report["group"])
			require.NotEmpty(t, report["token"])
			require.Contains(t, report, "waited_seconds")
			require.Contains(t, report, "held_seconds")
			for field, want := range c.want {
				require.Equal(t, want, report[field], field)
			}
		})
	}
}

// jsonLine finds the one line of JSON among messages.
func jsonLine(t *testing.T, text string) map[string]any {
	t.Helper()
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "{") {
			var value map[string]any
			require.NoError(t, json.Unmarshal([]byte(line), &value))
			return value
		}
	}
	t.Fatalf("no JSON in %q", text)
	return nil
}

func TestRunVerboseAndQuiet(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	require.Empty(t, s.run("run", "-q", "--", "true").stderr)
	require.Empty(t, s.run("run", "--", "true").stderr)
	told := s.run("run", "-v", "--", "true").stderr
	require.Regexp(t, `(?m)^multilock: took lock "lock" after `, told)
	require.Regexp(t, `(?m)^multilock: released lock "lock" after `, told)
}
