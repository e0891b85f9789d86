//go:build unix

package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What a plain wait says of jobs that have ended: the lines of the README.

// One of several jobs fails: the next step does not begin, with results and without.
func TestWaitStopsAtAFailure(t *testing.T) {
	t.Parallel()
	for _, options := range []string{"", "--once", "--once --retries 1"} {
		t.Run("run "+options, func(t *testing.T) {
			t.Parallel()
			s := newStation(t)
			got := s.script("sh", fmt.Sprintf(`
				for i in 1 2 3; do multilock run %s -n job$i -- sh -c "sleep 0.$i; exit $((i == 2 ? 3 : 0))" & done
				multilock wait && echo next-step
				echo "code $?"`, options))
			require.Equal(t, "code 1\n", got.stdout)
			require.Regexp(t, `multilock: job "job2" failed with exit code 3 on \S+ at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d`, got.stderr)
			require.NotContains(t, got.stderr, `job "job1"`)
			view := s.waitJSON()
			require.True(t, view.Open)
			require.False(t, view.OK)
			require.Len(t, view.Failed, 1)
			require.Equal(t, "job2", view.Failed[0].Name)
			require.Equal(t, 3, view.Failed[0].Exit)
		})
	}
}

// What ended before --since does not count. The history is as old as its files say.
func TestWaitSince(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.must("run", "-n", "x", "--", "true")
	file := s.historyFile()
	line := `{"time":"%s","event":"released","name":"old","token":"t","by":{"host":"node7","pid":7},"held_ns":1000000000,"exit":3}` + "\n"
	content := fmt.Sprintf(line, minutesAgo(10))
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	got := s.run("wait")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, `job "old" failed with exit code 3 on node7 at `)
	require.Equal(t, 1, s.run("wait", "--since", "11m").code)
	require.Equal(t, ended{}, s.run("wait", "--since", "9m"))
}

// Under --slots anything may run in a slot: a job is known by its command.
func TestWaitAfterSlots(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	flag := filepath.Join(t.TempDir(), "flag")
	scene7 := []string{"run", "-n", "render", "--slots", "1", "--", "test", "-e", flag}
	require.Equal(t, 1, s.run(scene7...).code)
	s.must("run", "-n", "render", "--slots", "1", "--", "echo", "scene8")
	require.Equal(t, 1, s.run("wait").code, "another job in that slot clears nothing")
	require.NoError(t, os.WriteFile(flag, nil, 0o600))
	holder := s.hold("render", "--slots", "2")
	s.must("run", "-n", "render", "--slots", "2", "--", "test", "-e", flag)
	require.Zero(t, holder.end().code)
	got := s.run("wait")
	require.Zero(t, got.code, got.stderr)
}

// What cannot be read is told, and the rest of it counts.
func TestWaitWithoutAHistory(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.must("run", "-n", "x", "--", "true")
	dir := filepath.Dir(s.historyFile())
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.WriteFile(dir, nil, 0o600)) // nobody reads a file as a directory
	got := s.run("wait")
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stderr, "warning: how the jobs ended is not known, only that nothing is held any more")
}

// historyFile is the only file of the group's history.
func (s *station) historyFile() string {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(s.base, ".multilock", "groups", ".locks", "history", "*.jsonl"))
	require.NoError(s.t, err)
	require.Len(s.t, files, 1)
	return files[0]
}

func minutesAgo(n int) string {
	return time.Now().Add(-time.Duration(n) * time.Minute).UTC().Format(time.RFC3339Nano)
}
