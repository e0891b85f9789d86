//go:build unix

package main_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each command has a short help that fits on a screen. The long help has all options of the short help, too.
func TestShortHelp(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	main := s.must("--help")
	_, list, _ := strings.Cut(main, "COMMANDS\n")
	list, _, _ = strings.Cut(list, "\n\n")
	commands := regexp.MustCompile(`(?m)^   ([a-z]+)[, ]`).FindAllStringSubmatch(list, -1)
	require.Greater(t, len(commands), 12)
	for _, found := range commands {
		name := found[1]
		short, long := s.must(name, "-h"), s.must(name, "--help")
		require.LessOrEqual(t, strings.Count(short, "\n"), 23, short)
		require.NotRegexp(t, `.{81}`, short+long)
		require.True(t, strings.HasPrefix(short, "usage: multilock "), short)
		require.Contains(t, strings.SplitN(short, "\n", 2)[0], " "+name, "it says how to call it")
		for _, option := range regexp.MustCompile(`(?m)^ +(-\w), |^ +(?:-\w, | +)?(--[a-z-]+) `).FindAllStringSubmatch(short, -1) {
			require.Regexp(t, `(?m)^ .*`+option[1]+option[2]+`\b.*  `, long, "%s: %s", name, option[0])
		}
	}
	require.Contains(t, s.must("-h"), "multilock help TOPIC")
	require.Equal(t, s.must("-h"), s.must("-qh"))
	for _, name := range []string{"run", "batch", "wait", "acquire", "release", "status", "history", "logs", "report", "break", "clean", "overdue", "doctor"} {
		require.Regexp(t, `\b`+name+`\b`, s.must("-h"))
	}
	s.requireUntouched()
}

func TestHelpTopics(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	require.Contains(t, s.must("help", "exit-codes"), "121  held by another process")
	require.Contains(t, s.must("h", "environment"), "MULTILOCK_FENCE")
	require.Contains(t, s.must("help", "locks"), "at once")
	batch := s.must("help", "batch")
	require.Contains(t, batch, "NAME<TAB>COMMAND", "the command")
	require.Contains(t, batch, "A line BARRIER divides the list", "and the topic")
	for _, words := range [][]string{{"help", "no-such-thing"}, {"help", "__keep"}, {"help", "run", "wait"}} {
		got := s.run(words...)
		require.Equal(t, 125, got.code)
		require.Empty(t, got.stdout)
	}
	require.Contains(t, s.run("help", "exitcodes").stderr, `did you mean "exit-codes"?`)
	require.Contains(t, s.run("help", "no-such-thing").stderr, "the topics are environment, exit-codes, filesystems, hooks, locks, output, schedule, sources, troubleshooting, waiting")
	s.requireUntouched()
}

// A call without arguments shows how to start. It is not a success, because a script may have lost its
// arguments.
func TestNothingTyped(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	for _, words := range [][]string{nil, {"-q"}, {"-d", s.base}, {"--"}} {
		got := s.run(words...)
		require.Equal(t, 125, got.code)
		require.Empty(t, got.stdout)
		require.Contains(t, got.stderr, "multilock -d /tmp run -n hello")
		require.True(t, strings.HasSuffix(got.stderr, "multilock: no command was given\n"), got.stderr)
	}
	s.requireUntouched()
}

func TestVersionCommand(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	require.Regexp(t, `^multilock \S+\ncommit \w+\ngo1\.\S+ \w+/\w+\n$`, s.must("version"))
	var build struct{ Version, Commit, Go, OS, Arch string }
	require.NoError(t, json.Unmarshal([]byte(s.must("version", "--json")), &build))
	require.Equal(t, s.must("--version"), "multilock "+build.Version+"\n")
	require.NotEmpty(t, build.Go)
	require.Equal(t, s.must("version", "--json"), s.must("--json", "version"))
	require.Equal(t, 125, s.run("version", "x").code)
	s.requireUntouched()
}
