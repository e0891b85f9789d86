//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/internal/place"
)

// On a command line everybody can see a secret with ps; in the environment it is
// where it belongs.
func TestSecretsOnTheCommandLine(t *testing.T) {
	for _, form := range []string{"full://ada:top@host:8029%s", "full://ada@host:8029%s?token=top"} {
		p := newProgram(t)
		url := strings.Replace(form, "%s", p.base, 1)
		got := p.run("status", "--source", url)
		require.Equal(t, ran{125, "", "multilock: status: --source " + p.url("full") +
			": there is a secret in it, which everybody on this host can read with ps; leave it out there, and put it into the variable MULTILOCK_PASSWORD, " +
			"or into a file that MULTILOCK_PASSWORD_FILE names, or the whole URL into MULTILOCK_SOURCE\n"}, got)
		p.requireUntouched()

		p.vars[place.EnvSource] = url
		require.Equal(t, "nothing is held in "+p.url("full")+", group .locks\n", p.must("status"))
		require.Equal(t, url, p.opened)
		p.must("status", "--source", p.url("full"))
		require.Equal(t, url, p.opened, "the same without its secret: a command from a message")
		p.must("status", "--source", p.url("full")+"?x=y")
		require.NotContains(t, p.opened, "top", "that is another one")
	}
}

func TestPasswordPlaces(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte("from file\r\nno more\n"), 0o600))
	p := newProgram(t)
	with := func(password string) string { return "full://ada:" + password + "@host:8029" + p.base }
	p.vars[place.EnvPasswordFile] = file
	p.must("status", "--source", p.url("full"))
	require.Equal(t, with("from%20file"), p.opened)
	p.vars[place.EnvPassword] = "p@/?#:w"
	p.must("status", "--source", p.url("full"))
	require.Equal(t, with("p%40%2F%3F%23%3Aw"), p.opened)
	p.vars[place.EnvSource] = with("own")
	p.must("status")
	require.Equal(t, with("own"), p.opened)
	p.must("status", "--source", "full://host:8029"+p.base)
	require.Equal(t, "full://host:8029"+p.base, p.opened, "a password belongs to a user")

	delete(p.vars, place.EnvPassword)
	p.vars[place.EnvPasswordFile] = "/nonexistent"
	got := p.run("status", "--source", "full://eve@host:8029"+p.base)
	require.Equal(t, 125, got.code)
	require.Contains(t, got.stderr, "read the password from the file that MULTILOCK_PASSWORD_FILE names: open /nonexistent: ")
}

// A library may well put the URL that it was given into its errors.
func TestErrorsOfLibrariesHaveNoSecrets(t *testing.T) {
	p := newProgram(t)
	for _, password := range []string{"top", "t%6Fp"} {
		p.vars[place.EnvSource] = "broken://ada:" + password + "@host"
		for _, command := range []string{"status", "doctor", "doctor --json"} {
			got := p.run(strings.Fields(command)...)
			require.Equal(t, 125, got.code)
			require.Contains(t, got.stdout+got.stderr, "dial broken://ada:...@host: no such host")
			require.NotContains(t, got.stdout+got.stderr, password)
		}
	}
}

func TestPlacesThatCannotBe(t *testing.T) {
	p := newProgram(t)
	p.vars[place.EnvDir] = p.base
	for args, want := range map[string]string{
		"status -d x --source file:y":                "status: -d and --source contradict each other: -d DIRECTORY stands for --source file:DIRECTORY",
		"-d x status --source bare://host/x":         "status: -d and --source contradict each other",
		"status -g G --source bare://host/x":         "status: --group: there are no groups in bare://host/x",
		"status --legacy-peers --source full://h/x":  "status: --legacy-peers: the Python MultiLock knows no other locks than those of a directory (-d)",
		"status --source other://ada:top@h/x":        `status: --source "other://ada@h/x": unknown kind of source; this multilock knows file:DIRECTORY, cloudshell://USER@HOST/RESERVATION`,
		"status --source full://ada:1/top@host/x":    `status: --source "full:...": it cannot be told where its password ends; write %40 for an @`,
		"status --source FILE:":                      `status: --source "FILE:": write file:///absolute/path or file:relative/path`,
		"status --source file://ada:top@elsewhere/x": `status: --source "file://ada@elsewhere/x": write file:///absolute/path`,
	} {
		got := p.run(strings.Fields(args)...)
		require.Equal(t, 125, got.code, args)
		require.Contains(t, got.stderr, want)
		require.Empty(t, got.stdout)
	}
	p.requireUntouched()
}

// The nearer one wins: the command line over the environment.
func TestDirectoryOnTheCommandLineWins(t *testing.T) {
	p := newProgram(t)
	p.vars[place.EnvSource] = p.url("full")
	require.Equal(t, "nothing is held in "+p.base+"/.locks\n", p.must("status", "-d", p.base))
	require.Empty(t, p.opened)
	require.Equal(t, "nothing is held in "+p.base+"/.locks\n", p.must("status", "--source", "FILE:"+p.base))
	require.Empty(t, p.opened)
}
