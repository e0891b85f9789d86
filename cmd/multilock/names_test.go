//go:build unix

package main_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A lock's name is an argument or follows -n, in every command that takes one.
func TestNameIsArgumentOrOption(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	owner := s.owner()
	for _, name := range [][]string{{"x"}, {"-n", "x"}, {"-nx"}, {"x", "-n", "x"}, {"--", "x"}} {
		a := s.acquire(owner, name...)
		require.Equal(t, "x", a.Name, "acquire %v", name)
		require.Contains(t, s.run(append([]string{"status", "--json"}, name...)...).stdout, a.Token, "status %v", name)
		require.Equal(t, ended{0, "", ""}, s.run(append([]string{"release", "--token", a.Token}, name...)...), "release %v", name)
		require.Contains(t, s.must(append([]string{"break"}, name...)...), `lock "x" is free`, "break %v", name)
		require.Contains(t, s.must(append([]string{"history"}, name...)...), "released", "history %v", name)
		require.Contains(t, s.must(append([]string{"clean", "--results"}, name...)...), "no results to delete", "clean %v", name)
	}
}

// If the lock's name is given where other commands take it, the message shows the place for "run".
func TestNameThatIsTakenForACommand(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	got := s.run("run", "no-such-command", "--", "echo", "a b")
	require.Equal(t, 127, got.code)
	require.Contains(t, got.stderr, "no-such-command: command not found; if that is the lock's name, write: run -n no-such-command -- echo 'a b'")
	require.Equal(t, "-- x\n", s.must("run", "echo", "--", "x"), "a command's own words")
	require.NotContains(t, s.run("run", "no-such-command", "x").stderr, "-n")
}

// A time limit of a job is --max-runtime or --timeout.
func TestTimeLimitOfAJob(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	for _, option := range []string{"--max-runtime", "--timeout"} {
		require.Equal(t, 124, s.run("run", option, "0.1", "--", "sleep", "60").code)
		require.Equal(t, 1, s.run("batch", "-g", strings.Trim(option, "-"), option, "0.1", s.list("a\tsleep 60")).code)
	}
}

// A whole line in the place of the program is for a shell; the hint can be pasted.
func TestCommandThatIsAShellLine(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	for line, want := range map[string]string{"echo a; echo b": "a\nb\n", "printf 'it is %s' x": "it is x", "echo>&1": "\n", "echo $((1+1))": "2\n"} {
		got := s.run("run", "--", line)
		require.Equal(t, 127, got.code)
		_, hint, found := strings.Cut(strings.TrimSpace(got.stderr), "if that is a line for a shell, write: ")
		require.True(t, found, got.stderr)
		require.Equal(t, want, s.script("sh", "multilock run "+hint).stdout)
	}
	require.NotContains(t, s.run("run", "--", "no-such-command").stderr, "sh -c")
}

// A group or a name that was never used is usually a typo, and the commands report that.
func TestUnknownGroupsAndNamesAreTold(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	const unused = " has never been used: "
	require.Contains(t, s.must("status", "-g", "typo"), unused)
	require.Contains(t, s.must("status", "-g", "typo", "x"), unused)
	require.Contains(t, s.run("history", "-g", "typo").stderr, unused)
	followed := s.run("logs", "-g", "typo", "-f", "a")
	require.Equal(t, 125, followed.code)
	require.Contains(t, followed.stderr, unused)
	s.requireUntouched()

	s.must("batch", "-q", s.list("a\techo hello"))
	require.NotContains(t, s.must("status"), unused)
	require.Equal(t, "multilock: no such event is in the history of "+s.base+"/.locks\n", s.run("history", "typo").stderr)
	require.Empty(t, s.run("history", "-q", "typo").stderr)
	followed = s.run("logs", "-f", "typo")
	require.Equal(t, 125, followed.code)
	require.Contains(t, followed.stderr, `there is no job "typo" in the list of `)
	require.Equal(t, "hello\n", s.must("logs", "-f", "a"))
}
