//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/command"
	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/help"
)

func appForTests() *cli.App {
	return newApp(&command.Env{Env: &console.Env{Getenv: func(string) string { return "" }}})
}

// eachFlag calls back for each option of each command, and of the program.
func eachFlag(app *cli.App, do func(command string, f cli.Flag)) {
	for _, f := range app.Flags {
		do("multilock", f)
	}
	for _, c := range app.Commands {
		for _, f := range c.Flags {
			do(c.Name, f)
		}
	}
}

// A letter that is shown means the same in all commands: the long option of that name, with a
// value or without.
func TestOneMeaningPerLetter(t *testing.T) {
	type meaning struct {
		option     string
		takesValue bool
	}
	means, from := map[string]meaning{}, map[string]string{}
	eachFlag(appForTests(), func(command string, f cli.Flag) {
		for _, name := range f.Names() {
			if len(name) > 1 {
				continue
			}
			this := meaning{f.Names()[0], takesValue(f)}
			if known, found := means[name]; found {
				require.Equal(t, known, this, "-%s of %q and of %q", name, from[name], command)
			}
			means[name], from[name] = this, command
		}
	})
	require.Equal(t, meaning{"wait", true}, means["w"])
	require.Equal(t, meaning{"help", false}, means["h"])
	require.Greater(t, len(means), 8)
}

// Former spellings are these, and no new ones: they mean different things in different commands.
func TestFormerSpellings(t *testing.T) {
	former := map[string]bool{}
	shown := map[string][]string{}
	eachFlag(appForTests(), func(c string, f cli.Flag) {
		shown[c] = append(shown[c], f.Names()...)
	})
	eachFlag(appForTests(), func(c string, f cli.Flag) {
		for _, name := range strings.Fields("l lockname maxage w t f r timeout on-lost every") {
			if command.Formerly(f, name) {
				former[c+" "+name+" "+f.Names()[0]] = true
				require.NotContains(t, shown[c], name, "two options of %s", c)
				require.NotContains(t, f.String(), "-"+name+" ")
			}
		}
	})
	for _, want := range []string{
		"status w watch", "release t token", "break t token", "break f force", "clean r results", "run l name", "multilock lockname name", "run maxage max-age",
		"wait t wait", "wait timeout wait", "doctor t wait", "batch timeout max-runtime", "run timeout max-runtime", "run on-lost if-lost", "status every interval",
	} {
		require.True(t, former[want], want)
	}
	for was := range former {
		c, rest, _ := strings.Cut(was, " ")
		if letter, _, _ := strings.Cut(rest, " "); len(letter) == 1 && letter != "l" {
			require.Contains(t, []string{"status w watch", "release t token", "break t token", "break f force", "clean r results", "wait t wait", "doctor t wait"}, was, "%s: no new letter may have two meanings", c)
		}
	}
}

// They go on working, before and after the command's name, glued or not.
func TestFormerSpellingsWork(t *testing.T) {
	for line, want := range map[string]map[string]string{
		"run -l N x":                          {"name": "N"},
		"run -lN x":                           {"name": "N"},
		"run -qlN x":                          {"name": "N", "quiet": "true"},
		"-l N -g G run --lockname=M x":        {"name": "M", "group": "G"},
		"run -lockname N x":                   {"name": "N"},
		"run -l N --name M x":                 {"name": "M"},
		"run --maxage 5 x":                    {"max-age": "5s"},
		"run --maxage=5 --max-age 6 x":        {"max-age": "6s"},
		"run -maxage 5 x":                     {"max-age": "5s"},
		"status -w x":                         {"watch": "true"},
		"status -qw x":                        {"watch": "true", "quiet": "true"},
		"break -ft T x":                       {"force": "true", "token": "T"},
		"release -tT x":                       {"token": "T"},
		"clean -r x":                          {"results": "true"},
		"run --timeout 5 x":                   {"max-runtime": "5s"},
		"run --max-runtime 5 x":               {"max-runtime": "5s"},
		"batch --timeout 5 x":                 {"max-runtime": "5s"},
		"batch --max-runtime 5 x":             {"max-runtime": "5s"},
		"batch --timeout=4 --max-runtime 5 x": {"max-runtime": "5s"},
	} {
		got, err := parse(t, strings.Fields(line)...)
		require.NoError(t, err, line)
		require.Equal(t, []string{"x"}, got.arguments, line)
		for name, value := range want {
			require.Equal(t, value, got.options[name], "%s of %s", name, line)
		}
	}
}

// -h shows each command that is listed on one screen, which is written for it.
func TestEachCommandHasAScreen(t *testing.T) {
	for _, c := range appForTests().VisibleCommands() {
		require.NotEmpty(t, help.Short(c.Name), c.Name)
	}
}
