//go:build unix

package main_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var commands = []string{"run", "wait", "status", "acquire", "release", "break", "clean", "history", "doctor"}

func TestHelp(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	main := s.must("--help")
	require.Equal(t, main, s.must())
	for _, command := range commands {
		require.Regexp(t, `(?m)^   `+command+`[ ,]`, main)
		help := s.must(command, "--help")
		require.Equal(t, help, s.must("help", command))
		require.Equal(t, help, s.must(command, "-h"))
		require.Equal(t, help, s.must("-d", "x", command, "-n", "y", "--help"))
		requireGoodHelp(t, help)
	}
	requireGoodHelp(t, main)
	require.NotContains(t, main, "__keep")
	for _, text := range []string{main, s.must("run", "--help")} {
		for _, code := range []string{"0", "1", "120", "121", "122", "123", "124", "125", "126", "127", "128+n"} {
			require.Regexp(t, `(?m)^ +`+regexp.QuoteMeta(code)+`  \S`, text)
		}
	}
	s.requireUntouched()
}

// requireGoodHelp requires that every option is explained, and that no default
// is shown that is none.
func requireGoodHelp(t *testing.T, help string) {
	t.Helper()
	_, options, found := strings.Cut(help, "OPTIONS:")
	require.True(t, found)
	for line := range strings.Lines(options) {
		if strings.HasPrefix(strings.TrimSpace(line), "--") {
			require.Regexp(t, `^ +--[a-z-]+( [A-Z]+)?(, --?[a-zA-Z]+( [A-Z]+)?)* {2,}\S`, line)
		}
		require.LessOrEqual(t, strings.Count(line, "(default:"), 1, line)
	}
	for _, wrong := range []string{"(default: false)", "(default: 0)", `(default: "`, " value ", "%!"} {
		require.NotContains(t, help, wrong)
	}
}

// The defaults that the help texts tell are those that are used.
func TestDefaultsAreAsTold(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	help := s.must("run", "--help")
	for option, value := range map[string]string{"ttl": "2m", "poll": "1s", "grace": "10s", "on-lost": "term", "conflict-exit-code": "121"} {
		require.Regexp(t, `--`+option+` .*\(default: `+value+`\)`, help)
	}
	s.hold("lock")
	require.InDelta(t, 120, s.lock("lock").TTL, 0)
}

func TestVersion(t *testing.T) {
	t.Parallel()
	require.Regexp(t, `^multilock \S+\n$`, newStation(t).must("--version"))
}

// The library's completion for shells is asked with a last argument of its own.
func TestCompletion(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	const ask = "--generate-bash-completion"
	for _, command := range commands {
		require.Contains(t, strings.Split(s.must(ask), "\n"), command)
		require.Zero(t, s.run(command, ask).code)
	}
	require.Contains(t, s.must("run", "--w", ask), "--wait")
	require.Contains(t, s.must("--so", ask), "--source")
	s.requireUntouched()
	require.Equal(t, ask+"\n", s.must("run", "--", "echo", ask), "that is the job's")
}

// No argument of a command is taken for help: it is a lock's name, a file, or a job's
// command, which has to be done or refused.
func TestNoArgumentIsHelp(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]struct {
		code   int
		output string
	}{
		"run -n x -- %s":       {127, "multilock: %s: command not found"},
		"run -n x %s":          {127, "multilock: %s: command not found"},
		"batch %s":             {125, "open %s: no such file"},
		"batch -- %s":          {125, "open %s: no such file"},
		"wait --members %s %s": {125, "it waits for the whole group"},
		"wait -- %s":           {125, "it waits for the whole group"},
		"status %s":            {0, "%s"},
		"acquire %s":           {125, `unexpected "%s"`},
		"release --token t %s": {125, `unexpected "%s"`},
		"break --force %s":     {0, "%s"},
		"break -- %s":          {0, "%s"},
		"clean %s":             {125, `unexpected "%s"`},
		"clean --results %s":   {0, "no results to forget"},
		"history %s":           {0, ""},
		"report %s":            {125, `report: "%s": there is nothing to name`},
		"doctor %s":            {125, `unexpected "%s"`},
		"doctor --join %s":     {125, `unexpected "%s"`},
		"-d . -q status -- %s": {0, ""},
	} {
		for _, word := range []string{"help", "h"} {
			t.Run(strings.ReplaceAll(args, "%s", word), func(t *testing.T) {
				t.Parallel()
				s := newStation(t)
				got := s.run(strings.Fields(strings.ReplaceAll(args, "%s", word))...)
				t.Logf("%d %s %s", got.code, got.stdout, got.stderr)
				require.Equal(t, want.code, got.code, got.stderr)
				require.Contains(t, got.stdout+got.stderr, strings.ReplaceAll(want.output, "%s", word))
				require.NotContains(t, got.stdout, "USAGE:")
			})
		}
	}
}

// Help is asked for by an option, whatever stands beside it, unless that is the job's.
func TestHelpBesideArguments(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	for _, args := range []string{
		"run -n x --help -- true", "run --help true", "run -h -- help", "break x --help", "break --help x", "status x -h", "batch FILE --help", "clean --results x y -h",
	} {
		words := strings.Fields(args)
		require.Equal(t, s.must(words[0], "--help"), s.must(words...), args)
	}
	s.requireUntouched()
	for _, args := range []string{"run -- echo -h", "run -n x echo -h", "run -n -h echo -h"} {
		require.Equal(t, "-h\n", s.must(strings.Fields(args)...), args)
	}
	require.Equal(t, 125, s.run("break", "x", "--help=x").code)
}
