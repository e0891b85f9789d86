//go:build unix

package main_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// private returns a path among the group's files.
func (s *station) private(path ...string) string {
	return filepath.Join(append([]string{s.base, ".multilock", "groups", ".locks"}, path...)...)
}

// sparse makes a file of ten gigabytes without content.
func (s *station) sparse(path string) {
	s.t.Helper()
	require.NoError(s.t, os.WriteFile(path, nil, 0o600))
	require.NoError(s.t, os.Truncate(path, 10<<30))
}

// An invalid file in the history, or an unreadable result, is reported, and does not hide or delay the
// others.
func TestStrangeFilesBesideTheHistory(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.must("run", "-n", "good", "--once", "--", "true")
	evil := s.private("history", time.Now().UTC().Format(time.DateOnly)+".evil.0.jsonl")
	s.sparse(evil)
	require.NoError(t, os.Symlink("/etc/hostname", s.private("done", "bad")))

	got := s.run("history")
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stdout, "recorded")
	require.Contains(t, got.stderr, "warning: of the history "+evil+" is left out: it contains no line of a history")
	require.Len(t, s.history("--limit", "1"), 1)

	got = s.run("report", "--json")
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stderr, `"level":"warning","message":"of the history `+evil+` is left out`)
	var report struct {
		Unreadable []string
		Jobs       []struct{ Name, State string }
	}
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &report))
	require.Len(t, report.Unreadable, 1)
	require.Len(t, report.Jobs, 2)
	require.Equal(t, "unknown", report.Jobs[0].State)
	require.Equal(t, "done", report.Jobs[1].State)

	got = s.run("status", "--json")
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stderr, `"level":"warning","message":"how bad ended cannot be read`)
	require.Contains(t, got.stdout, `"unreadable": [`)

	s.hold("held")
	starved := s.run("run", "-n", "held", "--fail-after", "1", "--", "true")
	require.Equal(t, 120, starved.code, starved.stderr)
	s.must("batch", "-g", ".locks", s.list("true"))
}

// Entries in staging that are not multilock's are reported, and remain.
func TestCleanNamesWhatIsStrange(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.must("run", "--", "true")
	require.NoError(t, os.MkdirAll(filepath.Join(s.base, ".multilock", "staging", "thesis", "years", "of work"), 0o700))
	for _, options := range [][]string{{"clean", "--dry-run"}, {"clean"}} {
		got := s.run(options...)
		require.Zero(t, got.code)
		require.Regexp(t, `^multilock: warning: left thesis alone: .*/staging/thesis is nothing that multilock puts there; move it away by hand\n$`, got.stderr)
	}
	require.DirExists(t, filepath.Join(s.base, ".multilock", "staging", "thesis", "years", "of work"))
}

// An invalid list counts as another list, at any size.
func TestManifestWithoutAnEnd(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	list := s.list("true", "true")
	s.must("batch", "-g", ".locks", list)
	s.sparse(s.private("manifest", "list"))
	got := s.run("batch", "-g", ".locks", list)
	require.NotZero(t, got.code)
	require.Contains(t, got.stderr, "a different list of jobs")
	require.Less(t, len(got.stderr), 4<<10)
}

// If a job's fencing token cannot be read, the job does not run, and its lock is released.
func TestNoJobWithoutItsFencingNumber(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	for name, put := range map[string]func(path string) error{
		"forged":  func(path string) error { return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 2<<40)) },
		"no file": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		s.must("run", "-n", name, "--", "true")
		counter := s.private("fence", name)
		require.NoError(t, os.Remove(counter))
		require.NoError(t, put(counter))
		for _, command := range [][]string{{"run", "-n", name, "--", "echo", "ran"}, {"run", "-n", name, "--once", "--", "echo", "ran"}, {"acquire", "-n", name, "--detach", "--ttl", "1h"}, {"acquire", "-n", name}} {
			got := s.run(command...)
			require.NotZero(t, got.code, command)
			require.Empty(t, got.stdout, command)
			require.Contains(t, got.stderr, "nothing was done under the lock, for want of a fencing number: ")
			require.Equal(t, "free", s.lock(name).State)
		}
	}
}
