//go:build unix

package main_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/clitest"
)

// The common options work in all positions: "base" is where the lock must have been.
func TestCommonOptions(t *testing.T) {
	t.Parallel()
	const there, elsewhere = "there", "elsewhere"
	cases := map[string]struct {
		Env                   []string
		args                  string
		base, group, lockName string
	}{
		"defaults":                          {nil, "run -d .", ".", ".locks", "lock"},
		"before the command":                {nil, "-d there -g G -n N run", there, "G", "N"},
		"after the command":                 {nil, "run -d there -g G -n N", there, "G", "N"},
		"on both sides":                     {nil, "-d there run -g G -n N", there, "G", "N"},
		"after wins over before":            {nil, "-d elsewhere -g A -n A run -d there -g G -n N", there, "G", "N"},
		"long":                              {nil, "run --dir there --group G --name N", there, "G", "N"},
		"long, with =":                      {nil, "--dir=there run --group=G --name=N", there, "G", "N"},
		"one dash":                          {nil, "run -dir there -group=G -name N", there, "G", "N"},
		"spellings of the Python original":  {nil, "run -l N -g G -d there", there, "G", "N"},
		"the same before the command":       {nil, "-l N -g G -d there run", there, "G", "N"},
		"lockname":                          {nil, "run --lockname N -d there -g G", there, "G", "N"},
		"environment":                       {[]string{"MULTILOCK_DIR=there", "MULTILOCK_GROUP=G"}, "run -n N", there, "G", "N"},
		"empty environment":                 {[]string{"MULTILOCK_DIR=", "MULTILOCK_GROUP=", "MULTILOCK_SOURCE=", "MULTILOCK_LEGACY_PEERS="}, "run -d .", ".", ".locks", "lock"},
		"before wins over environment":      {[]string{"MULTILOCK_DIR=elsewhere", "MULTILOCK_GROUP=A"}, "-d there -g G run -n N", there, "G", "N"},
		"after wins over environment":       {[]string{"MULTILOCK_DIR=elsewhere", "MULTILOCK_GROUP=A"}, "run -d there -g G -n N", there, "G", "N"},
		"name is no variable":               {[]string{"MULTILOCK_NAME=A", "MULTILOCK_TOKEN=B"}, "run -d there", there, ".locks", "lock"},
		"source":                            {nil, "run --source file:there -n N", there, ".locks", "N"},
		"source before the command":         {nil, "--source file:there run -n N", there, ".locks", "N"},
		"source in the environment":         {[]string{"MULTILOCK_SOURCE=file:there"}, "run -n N", there, ".locks", "N"},
		"source wins over dir":              {[]string{"MULTILOCK_DIR=elsewhere"}, "run --source file:there", there, ".locks", "lock"},
		"group in the environment of a job": {[]string{"MULTILOCK_GROUP=G"}, "run -n N -d there", there, "G", "N"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStation(t)
			for _, dir := range []string{there, elsewhere} {
				require.NoError(t, os.Mkdir(filepath.Join(s.base, dir), 0o700))
			}
			cmd := s.command(append(strings.Fields(c.args), "--", "sh", "-c", `echo $MULTILOCK_GROUP $MULTILOCK_NAME`)...)
			cmd.Env, cmd.Dir = append(clitest.Environ(), c.Env...), s.base
			require.Equal(t, ended{0, c.group + " " + c.lockName + "\n", ""}, s.finish(cmd))
			require.DirExists(t, filepath.Join(s.base, c.base, c.group))
			require.NoDirExists(t, filepath.Join(s.base, elsewhere, ".multilock"))
		})
	}
}

func TestSourceURLs(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	for _, source := range []string{"file:" + s.base, "file://" + s.base, "file://localhost" + s.base} {
		require.Equal(t, "x\n", s.must("run", "--source", source, "--", "echo", "x"))
	}
}

// All commands accept the common options before and after their arguments.
func TestOptionsAfterArguments(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.hold("x")
	cmd := s.command("status", "x", "-d", s.base, "--json")
	cmd.Env = clitest.Environ()
	require.Contains(t, s.finish(cmd).stdout, `"state": "held"`)
	require.Contains(t, s.run("status", "-n", "x", "--json").stdout, `"state": "held"`)
	require.Contains(t, s.must("ls", "y"), "free")
	require.Contains(t, s.must("break", "x", "--force", "--now"), "broke lock")
	require.Len(t, s.history("x", "--limit", "1"), 1)
}

func TestLegacyPeers(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	require.NoError(t, os.MkdirAll(filepath.Join(s.base, ".locks", "x"), 0o700)) // as created by a Python peer
	attempt := func(env string, args ...string) int {
		cmd := s.command(append(append([]string{"run", "-n", "x"}, args...), "--", "true")...)
		cmd.Env = append(cmd.Env, env)
		return s.finish(cmd).code
	}
	require.Equal(t, 121, attempt("", "--legacy-peers"))
	require.Equal(t, 121, attempt("MULTILOCK_LEGACY_PEERS=1"))
	require.Equal(t, 125, attempt("MULTILOCK_LEGACY_PEERS=perhaps"))
	require.Equal(t, 0, attempt("MULTILOCK_LEGACY_PEERS=1", "--legacy-peers=false"))
}

var commands = []string{"run", "wait", "status", "acquire", "release", "break", "clean", "history", "doctor"}

func TestHelp(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	main := s.must("--help")
	require.Equal(t, main, s.must("help"))
	for _, command := range commands {
		require.Regexp(t, `(?m)^   `+command+`[ ,]`, main)
		help := s.must(command, "--help")
		require.True(t, strings.HasPrefix(s.must("help", command), help), command)
		require.Equal(t, help, s.must("-d", "x", command, "-n", "y", "--help"))
		requireGoodHelp(t, help)
	}
	requireGoodHelp(t, main)
	require.NotContains(t, main, "__keep")
	for _, code := range []string{"0", "1", "120", "121", "122", "123", "124", "125", "126", "127", "128+n"} {
		require.Regexp(t, `(?m)^ +`+regexp.QuoteMeta(code)+`  \S`, s.must("help", "exit-codes"))
	}
	for command, lines := range map[string]int{"run": 89, "batch": 109, "wait": 70} {
		require.LessOrEqual(t, strings.Count(s.must(command, "--help"), "\n"), lines, "%s: the rest belongs into a topic", command)
	}
	s.requireUntouched()
}

// requireGoodHelp requires that every option is explained, and that every shown default is a real one.
func requireGoodHelp(t *testing.T, help string) {
	t.Helper()
	_, options, found := strings.Cut(help, "\nBASICS\n")
	require.True(t, found)
	for line := range strings.Lines(options) {
		if strings.HasPrefix(line, "   -") {
			require.Regexp(t, `^ +(-\w, )?--[a-z-]+( [A-Z]+)?( {2,}\S|\n$)`, line)
		}
		require.LessOrEqual(t, strings.Count(line, "(default:"), 1, line)
	}
	for _, wrong := range []string{"(default: false)", "(default: 0)", `(default: "`, " value ", "%!"} {
		require.NotContains(t, help, wrong)
	}
}

// The defaults in the help texts are those that are used.
func TestDefaultsAreAsTold(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	help := s.must("run", "--help")
	for option, value := range map[string]string{"ttl": "2m", "poll": "1s", "grace": "10s", "if-lost": "term", "conflict-exit-code": "121"} {
		_, text, _ := strings.Cut(help, "--"+option+" ")
		text, _, _ = strings.Cut(text, "   --")
		require.Contains(t, strings.Join(strings.Fields(text), " "), "(default: "+value+")")
	}
	s.hold("lock")
	require.InDelta(t, 120, s.lock("lock").TTL, 0)
}

func TestVersion(t *testing.T) {
	t.Parallel()
	require.Regexp(t, `^multilock \S+\n$`, newStation(t).must("--version"))
}

// No argument of a command requests help: it is a lock's name, a file, or a job's command.
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
		"acquire --pid 0 %s":   {125, "must be at least 1"},
		"release --token t %s": {122, `lock "%s" is lost`},
		"break --force %s":     {0, "%s"},
		"break -- %s":          {0, "%s"},
		"clean %s":             {125, `"%s" needs --results`},
		"clean --results %s":   {0, "no results to delete"},
		"history %s":           {0, ""},
		"report %s":            {125, `report: unexpected "%s": `},
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
				require.NotContains(t, got.stdout, "\nBASICS\n")
			})
		}
	}
}

// Only an option requests help, next to any other words, unless it is the job's.
func TestHelpBesideArguments(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	for _, args := range []string{
		"run -n x --help -- true", "run --help true", "run -h -- help", "break x --help", "break --help x", "status x -h", "batch FILE --help", "clean --results x y -h", "run -qh", "run -qnx -h", "-q run -h",
	} {
		words := strings.Fields(args)
		help := "--help"
		if !slices.Contains(words, help) {
			help = "-h"
		}
		asked := slices.IndexFunc(words, func(word string) bool { return word[0] != '-' })
		require.Equal(t, s.must(words[asked], help), s.must(words...), args)
	}
	s.requireUntouched()
	for _, args := range []string{"run -- echo -h", "run -n x echo -h", "run -n -h echo -h"} {
		require.Equal(t, "-h\n", s.must(strings.Fields(args)...), args)
	}
	require.Equal(t, 125, s.run("break", "x", "--help=x").code)
}
