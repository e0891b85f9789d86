//go:build unix

package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCandidates checks the candidates for all shells.
func TestCandidates(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.hold("nightly")
	s.must("run", "--once", "-n", "page7", "--", "true")
	other := newStation(t)
	other.hold("elsewhere")
	for _, c := range []struct {
		typed string
		want  string
	}{
		{"sta", "status"},
		{"nonsense x", ":command"},
		{"status --res", "--results"},
		{"status ", "nightly page7"},
		{"break nig", "nightly"},
		{"status -- -", ""},
		{"acquire -n p", "page7"},
		{"acquire -qn ", "nightly page7"},
		{"acquire --name=", "--name=nightly --name=page7"},
		{"-d " + other.base + " status ", "elsewhere"},
		{"status -d" + other.base + " ", "elsewhere"},
		{"status -d /no/such/directory ", ""},
		{"status -g none ", ""},
		{"-d ", ":files"},
		{"batch ", ":files"},
		{"run --if-lost k", "kill"},
		{"run -n nightly ", ":command"},
		{"run -n nightly -- status --res", ":command"},
		{"run make --fo", ":command"},
	} {
		words := strings.Split(c.typed, " ")
		require.Equal(t, c.want, strings.Join(strings.Fields(s.must(append([]string{"__complete"}, words...)...)), " "), c.typed)
	}
	for _, command := range commands {
		require.Contains(t, strings.Split(s.must("__complete", ""), "\n"), command)
		require.Contains(t, s.must("__complete", command, "--so"), "--source")
	}
}

func TestCompletionInShells(t *testing.T) {
	t.Parallel()
	for shell, script := range map[string]string{
		"bash": `source <(multilock completion bash)
			try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _multilock 2>/dev/null; echo "${COMPREPLY[*]}"; }
			try multilock sta
			try multilock status ""
			try multilock acquire --name = ni
			try multilock -d /de`,
		"fish": `multilock completion fish | source
			complete -C "multilock sta"
			complete -C "multilock status "
			complete -C "multilock acquire --name=ni" | string replace -- --name= ""
			complete -C "multilock -d /de" | string trim -r -c /`,
	} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			s := newStation(t)
			s.hold("nightly")
			require.Equal(t, ended{0, "status\nnightly\nnightly\n/dev\n", ""}, s.script(shell, script))
		})
	}
}

// TestCompletionRunsNoProgramThatIsTyped: another user's directory may contain a program with that name,
// which the completion must not run.
func TestCompletionRunsNoProgramThatIsTyped(t *testing.T) {
	t.Parallel()
	const theirs = `#!/bin/sh
		[ "$1" != __complete ] || >ran
		echo "completed: $2"`
	for shell, script := range map[string]string{
		"bash": `source <(multilock completion bash)
			COMP_WORDS=(./multilock status ni); COMP_CWORD=2; _multilock 2>/dev/null; echo "completed: ${COMPREPLY[*]}"`,
		"fish": `multilock completion fish | source
			echo "completed:" (complete -C "./multilock status ni")`,
		"zsh": typedInZsh(`./multilock status ni\t\n`),
	} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			s, dir := newStation(t), t.TempDir()
			s.hold("nightly")
			require.NoError(t, os.WriteFile(filepath.Join(dir, "multilock"), []byte(theirs), 0o755)) //nolint:gosec // a program
			got := s.script(shell, "cd '"+dir+"'\n"+script)
			require.NoFileExists(t, filepath.Join(dir, "ran"))
			require.Regexp(t, `(?m)^completed: nightly\b`, got.stdout, got.stderr)
		})
	}
}

// TestCompletionOfStrangersNames: any user with write access can choose names of locks.
func TestCompletionOfStrangersNames(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.hold("a$(touch pwned)")
	for _, name := range []string{"--force", ":command"} {
		require.NoError(t, os.MkdirAll(filepath.Join(s.base, ".locks", name), 0o755)) //nolint:gosec // as locks are
	}
	got := s.script("bash", `source <(multilock completion bash)
		COMP_WORDS=(multilock status --name = a); COMP_CWORD=4; _multilock 2>/dev/null; printf '%s\n' "${COMPREPLY[@]}"`)
	require.Equal(t, ended{0, `a\$\(touch\ pwned\)` + "\n", ""}, got)
	require.Equal(t, "a$(touch pwned)\n", s.must("__complete", "status", ""))
}

// TestCompletionInZsh types into a shell on a terminal, because zsh completes only there.
func TestCompletionInZsh(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.hold("nightly")
	typed := s.script("zsh", typedInZsh(`multilock sta\tni\t\n`))
	require.Equal(t, 0, typed.code)
	require.Regexp(t, `(?m)^nightly +held `, typed.stdout)
}

// typedInZsh returns a script that types these keys, and prints the terminal's screen.
func typedInZsh(keys string) string {
	return `zmodload zsh/zpty; zpty z zsh -f -i
		zpty -w z 'PS1=; autoload -U compinit; compinit -u -D; source <(multilock completion zsh); bindkey "^I" complete-word; echo rea""dy'
		while zpty -r z line && [[ $line != *ready* ]]; do :; done
		zpty -w -n z $'` + keys + `echo to the e""nd\n'
		while zpty -r z line; do print -r -- $line; [[ $line == *to\ the\ end* ]] && break; done
		zpty -d z`
}

func TestCompletionOfWhat(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	for _, words := range [][]string{{}, {"tcsh"}, {"bash", "zsh"}, {"../completion.go"}} {
		got := s.run(append([]string{"completion"}, words...)...)
		require.Equal(t, 125, got.code)
		require.Contains(t, got.stderr, "bash, zsh or fish")
	}
}
