//go:build unix

package main

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
)

// parsed is what a command receives: the given options with their values, and the arguments.
type parsed struct {
	options   map[string]string
	arguments []string
}

// parse parses a command line like the program, without running the command.
func parse(t testing.TB, words ...string) (parsed, error) {
	t.Helper()
	var got parsed
	e := envForTests()
	app := newApp(e)
	for _, c := range app.Commands {
		c.Action = func(c *cli.Context) error {
			got = parsed{e.Line.Given, c.Args().Slice()}
			return e.Line.Check(c.Command.Name, got.arguments)
		}
	}
	line, err := arrange(app, e.Line, append([]string{"multilock"}, words...))
	if err == nil {
		err = app.RunContext(t.Context(), line.ours)
	}
	return got, err
}

// Short options are combined as in getopt(3).
func TestShortOptions(t *testing.T) {
	type values = map[string]string
	for line, want := range map[string]struct {
		options   values
		arguments string
	}{
		"run -w10 x":                      {values{"wait": "10"}, "x"},
		"run -w 10 x":                     {values{"wait": "10"}, "x"},
		"run -w=10 x":                     {values{"wait": "10"}, "x"},
		"run -nNAME x":                    {values{"name": "NAME"}, "x"},
		"run -qE0 x":                      {values{"quiet": "true", "conflict-exit-code": "0"}, "x"},
		"run -qE 0 x":                     {values{"quiet": "true", "conflict-exit-code": "0"}, "x"},
		"run -qvE=0 x":                    {values{"quiet": "true", "verbose": "true", "conflict-exit-code": "0"}, "x"},
		"run -n-x x":                      {values{"name": "-x"}, "x"},
		"run -n -x x":                     {values{"name": "-x"}, "x"},
		"run -n -h x":                     {values{"name": "-h"}, "x"},
		"run -nh x":                       {values{"name": "h"}, "x"},
		"run -n -- x":                     {values{"name": "--"}, "x"},
		"run -n-- -- x":                   {values{"name": "--"}, "x"},
		"run -nä -qgö x":                  {values{"name": "ä", "quiet": "true", "group": "ö"}, "x"},
		"run -qd DIR x":                   {values{"quiet": "true", "dir": "DIR"}, "x"},
		"run -qd=DIR x":                   {values{"quiet": "true", "dir": "DIR"}, "x"},
		"run -d/a=b x":                    {values{"dir": "/a=b"}, "x"},
		"-qd/shared run x":                {values{"quiet": "true", "dir": "/shared"}, "x"},
		"-qd /shared run -nN x":           {values{"quiet": "true", "dir": "/shared", "name": "N"}, "x"},
		"-d run run x":                    {values{"dir": "run"}, "x"},
		"-qv -g=G run -q=false x":         {values{"verbose": "true", "group": "G"}, "x"},
		"-q -- run -qv x":                 {values{"quiet": "true", "verbose": "true"}, "x"},
		"run -dir there -name=N x":        {values{"dir": "there", "name": "N"}, "x"},
		"run -q -- -w10 -qE0":             {values{"quiet": "true"}, "-w10 -qE0"},
		"run -q x -w10 -qE0 --help":       {values{"quiet": "true"}, "x -w10 -qE0 --help"},
		"run -nqv -qv x":                  {values{"name": "qv", "quiet": "true", "verbose": "true"}, "x"},
		"run -n qv -qv x":                 {values{"name": "qv", "quiet": "true", "verbose": "true"}, "x"},
		"run -qv qv -qv":                  {values{"quiet": "true", "verbose": "true"}, "qv -qv"},
		"run -- -- x":                     {values{}, "-- x"},
		"run - -q":                        {values{}, "- -q"},
		"run -w1 --wait=2 -qw3 --quiet x": {values{"wait": "3", "quiet": "true"}, "x"},
		"-d a run -d b --dir=c -dd x":     {values{"dir": "d"}, "x"},
		"batch -j8 FILE":                  {values{"jobs": "8"}, "FILE"},
		"batch -0j8 FILE":                 {values{"null": "true", "jobs": "8"}, "FILE"},
		"batch FILE -vj 8":                {values{"jobs": "8", "verbose": "true"}, "FILE"},
		"batch -j8 -":                     {values{"jobs": "8"}, "-"},
		"break x -qn y":                   {values{"quiet": "true", "name": "y"}, "x"},
		"break -- -q":                     {values{}, "-q"},
		"status a -qg G b --json c":       {values{"quiet": "true", "group": "G", "json": "true"}, "a b c"},
		"wait --timeout=5 --settle 1":     {values{"wait": "5", "settle": "1"}, ""},
	} {
		t.Run(line, func(t *testing.T) {
			got, err := parse(t, strings.Fields(line)...)
			require.NoError(t, err)
			for name, value := range want.options {
				require.Equal(t, value, got.options[name], name)
				delete(got.options, name)
			}
			require.Empty(t, got.options)
			require.Equal(t, want.arguments, strings.Join(got.arguments, " "))
		})
	}
}

func TestShortOptionsThatAreNone(t *testing.T) {
	for line, want := range map[string]string{
		"run -qx true":      "run: there is no option -x, as in -qx (a long option has two dashes); see --help",
		"run -xq true":      "run: there is no option -xq; see --help",
		"run -x true":       "run: there is no option -x; see --help",
		"run -verbos true":  "run: there is no option -e, as in -verbos (a long option has two dashes); see --help",
		"run -qw":           "run: -w needs a value",
		"run -wx true":      `run: -w: invalid duration "x": use 90s, 5m, 2h30m, 1d, or a number of seconds`,
		"-qx run true":      "there is no option -x, as in -qx (a long option has two dashes); see --help",
		"break x -qforce":   "break: there is no option -o, as in -qforce (a long option has two dashes); see --help",
		"batch -j8x jobs":   `batch: -j: "8x" is not a number`,
		"status -q=maybe x": `status: -q: "maybe" is neither true nor false`,
	} {
		_, err := parse(t, strings.Fields(line)...)
		require.EqualError(t, err, want, line)
	}
	_, err := parse(t, "overdue", "-qx")
	require.Equal(t, console.ExitMonitorUnknown, console.ExitCode(err), "as of all that is wrong there")
}

// A job's words are passed unchanged, whatever they look like, and whatever the options before them look
// like.
func TestJobWordsStayAsTheyAre(t *testing.T) {
	for seed := range uint64(2000) {
		g := lineOf{rand.New(rand.NewPCG(seed, 0))}
		before, want := g.options()
		words, job := append(before, "run"), g.job()
		after, more := g.options()
		words = append(words, after...)
		for name, value := range more {
			want[name] = value
		}
		if g.IntN(2) == 0 || strings.HasPrefix(job[0], "-") && job[0] != "-" {
			words = append(words, "--")
		}
		words = append(words, job...)
		got, err := parse(t, words...)
		require.NoError(t, err, "%d: %q", seed, words)
		require.Equal(t, job, got.arguments, "%d: %q", seed, words)
		for name, value := range want {
			require.Equal(t, value, got.options[name], "%d: %s of %q", seed, name, words)
		}
	}
}

// lineOf generates command lines.
type lineOf struct{ *rand.Rand }

// options generates common options, in all their spellings.
func (g lineOf) options() (words []string, want map[string]string) {
	want = map[string]string{}
	cluster := "-"
	for range g.IntN(5) {
		switch g.IntN(2) {
		case 0: // without a value
			name, letter, _ := strings.Cut(g.pick("quiet q", "verbose v", "json"), " ")
			want[name] = "true"
			if letter == "" || g.IntN(3) == 0 {
				words = append(words, "--"+name)
				continue
			}
			cluster += letter
		default:
			name, letter, _ := strings.Cut(g.pick("dir d", "group g", "name n"), " ")
			value := g.word()
			want[name] = value
			words = append(words, g.spelled(cluster, name, letter, value)...)
			cluster = "-"
		}
	}
	if cluster != "-" {
		words = append(words, cluster)
	}
	return words, want
}

// spelled generates an option with its value, after the letters of a cluster.
func (g lineOf) spelled(cluster, name, letter, value string) (words []string) {
	form := g.IntN(5)
	if form < 3 && cluster != "-" {
		words = []string{cluster}
	}
	switch form {
	case 0:
		return append(words, "--"+name+"="+value)
	case 1:
		return append(words, "--"+name, value)
	case 2:
		return append(words, "-"+letter, value)
	case 3:
		return append(words, cluster+letter, value)
	}
	if long := letter + value; value[0] == '=' || long == name || strings.HasPrefix(long, name+"=") || long == "-help" || strings.HasPrefix(value, "-") {
		return append(words, cluster+letter+"="+value)
	}
	return append(words, cluster+letter+value)
}

func (g lineOf) job() (words []string) {
	for range 1 + g.IntN(6) {
		words = append(words, g.word())
	}
	return words
}

func (g lineOf) pick(words ...string) string { return words[g.IntN(len(words))] }

func (g lineOf) word() string {
	return g.pick("x", "run", "help", "h", "-h", "--help", "-", "--", "-q", "-w10", "-qE0", "-n", "-nNAME", "--name", "--name=x", "=x", "ä", "-ä", "a b", "qv", "-qv", "--quiet=x",
		"-Wx=y", "\n", "\xff", "-\xff", "version", "$(x)", "'", "-0", "-1", "--no-such-option")
}

// FuzzJobWords takes words that are separated by NUL bytes.
func FuzzJobWords(f *testing.F) {
	for _, seed := range []string{"true", "echo\x00-h", "--\x00--", "-qE0\x00-w10", "sh\x00-c\x00exit 3", "\x00\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		job := strings.Split(text, "\x00")
		for _, before := range [][]string{{"run", "-qnx", "--"}, {"-d/shared", "run", "-E0", "-n", "--", "--"}, {"run"}} {
			if len(before) == 1 && strings.HasPrefix(job[0], "-") {
				continue // one of our options
			}
			got, err := parse(t, append(slices.Clone(before), job...)...)
			require.NoError(t, err, "%q", job)
			require.Equal(t, job, got.arguments)
		}
	})
}
