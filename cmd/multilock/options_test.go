//go:build unix

package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/clitest"
)

// The options that every command has, in all their places: "base" is where the
// lock must have been.
func TestCommonOptions(t *testing.T) {
	t.Parallel()
	const there, elsewhere = "there", "elsewhere"
	cases := map[string]struct {
		Env                   []string
		args                  string
		base, group, lockName string
	}{
		"defaults":                          {nil, "run", ".", ".locks", "lock"},
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
		"empty environment":                 {[]string{"MULTILOCK_DIR=", "MULTILOCK_GROUP=", "MULTILOCK_SOURCE=", "MULTILOCK_LEGACY_PEERS="}, "run", ".", ".locks", "lock"},
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

// All commands take the common options on both sides of their arguments.
func TestOptionsAfterArguments(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.hold("x")
	cmd := s.command("status", "x", "-d", s.base, "--json")
	cmd.Env = clitest.Environ()
	require.Contains(t, s.finish(cmd).stdout, `"state": "held"`)
	require.Contains(t, s.must("status", "-n", "x", "--json"), `"state": "held"`)
	require.Contains(t, s.must("ls", "y"), "free")
	require.Contains(t, s.must("break", "x", "--force"), "broke lock")
	require.Len(t, s.history("x", "--limit", "1"), 1)
}

func TestLegacyPeers(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	require.NoError(t, os.MkdirAll(filepath.Join(s.base, ".locks", "x"), 0o700)) // a Python peer has just made it
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
