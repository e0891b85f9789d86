//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/command"
	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/options"
)

func envForTests() *command.Env {
	return &command.Env{Env: &console.Env{Getenv: func(string) string { return "" }}}
}

func appForTests() *cli.App { return newApp(envForTests()) }

// eachOption calls do for each option of each command, and of the program.
func eachOption(do func(command string, o *options.Option)) {
	for _, name := range append(command.Names(appForTests()), options.Program) {
		for _, o := range options.Of(name) {
			do(name, o)
		}
	}
}

// A displayed letter means the same in all commands: the same long option, with or without a value.
func TestOneMeaningPerLetter(t *testing.T) {
	type meaning struct {
		option     string
		takesValue bool
	}
	means, from := map[string]meaning{}, map[string]string{}
	eachOption(func(command string, o *options.Option) {
		if o.Letter == "" {
			return
		}
		this := meaning{o.Name, o.TakesValue()}
		if known, found := means[o.Letter]; found {
			require.Equal(t, known, this, "-%s of %q and of %q", o.Letter, from[o.Letter], command)
		}
		means[o.Letter], from[o.Letter] = this, command
	})
	require.Equal(t, meaning{"wait", true}, means["w"])
	require.NotContains(t, means, "h")
	require.Greater(t, len(means), 8)
}

// The former letters that mean another option elsewhere are known, and there are no new ones.
func TestFormerSpellings(t *testing.T) {
	known := strings.Fields("status:w release:t break:t break:f clean:r wait:t doctor:t")
	eachOption(func(command string, o *options.Option) {
		for _, former := range strings.Fields(o.Former) {
			for _, other := range options.Accepted(command) {
				require.False(t, other != o && other.Called(former), "two options of %s: %s", command, former)
			}
			if len(former) == 1 && former != "l" {
				require.Contains(t, known, command+":"+former)
			}
		}
	})
}

// Former letters still work, before and after the command's name, and combined with values.
func TestFormerSpellingsWork(t *testing.T) {
	for line, want := range map[string]map[string]string{
		"run -l N x":                          {"name": "N"},
		"run -lN x":                           {"name": "N"},
		"run -qlN x":                          {"name": "N", "quiet": "true"},
		"-l N -g G run --lockname=M x":        {"name": "M", "group": "G"},
		"run -lockname N x":                   {"name": "N"},
		"run -l N --name M x":                 {"name": "M"},
		"run --maxage 5 x":                    {"max-age": "5"},
		"run --maxage=5 --max-age 6 x":        {"max-age": "6"},
		"run -maxage 5 x":                     {"max-age": "5"},
		"status -w x":                         {"watch": "true"},
		"status -qw x":                        {"watch": "true", "quiet": "true"},
		"break -ft T x":                       {"force": "true", "token": "T"},
		"release -tT x":                       {"token": "T"},
		"clean -r x":                          {"results": "true"},
		"run --timeout 5 x":                   {"max-runtime": "5"},
		"run --max-runtime 5 x":               {"max-runtime": "5"},
		"batch --timeout 5 x":                 {"max-runtime": "5"},
		"batch --max-runtime 5 x":             {"max-runtime": "5"},
		"batch --timeout=4 --max-runtime 5 x": {"max-runtime": "5"},
	} {
		got, err := parse(t, strings.Fields(line)...)
		require.NoError(t, err, line)
		require.Equal(t, []string{"x"}, got.arguments, line)
		for name, value := range want {
			require.Equal(t, value, got.options[name], "%s of %s", name, line)
		}
	}
}
