//go:build unix

package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStatus(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	require.Equal(t, ended{0, "nothing is held in " + s.base + "/.locks\n", ""}, s.run("status"))
	require.Empty(t, s.must("status", "-q"))
	s.requireUntouched()

	s.hold("nightly")
	s.hold("two words")
	s.dead("old")
	s.awaitNote("nightly")
	lines := strings.Split(strings.TrimSpace(s.must("ls")), "\n")
	require.Len(t, lines, 4)
	require.Equal(t, []string{"NAME", "STATE", "HOST", "PID", "USER", "HELD", "FOR", "LAST", "SIGN", "COMMAND", "WHY"}, strings.Fields(lines[0]))
	require.Regexp(t, `^nightly +held +\S+ +\d+ +\S+ +\S+ +\S+ +sh -c 'echo ready; exec cat' +its job lives: `, lines[1])
	require.Regexp(t, `^old +dead .* acquire for pid \d+ `, lines[2])
	require.Regexp(t, `^"two words" +held `, lines[3])

	some := s.must("status", "old", "never")
	require.NotContains(t, some, "nightly")
	require.Regexp(t, `(?m)^never +free +- +- +- +\? +\? +- +nobody holds it$`, some)
}

func TestStatusJSON(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	require.JSONEq(t, `{"base": "`+s.base+`", "group": "G", "locks": [],
		"results": {"done": 0, "failed": 0, "retry": 0, "unknown": 0, "list": []}}`, s.must("status", "--json", "-g", "G"))
	s.hold("x", "-g", "G", "--ttl", "90s")
	var report map[string]any
	require.NoError(t, json.Unmarshal([]byte(s.must("status", "--json", "-g", "G")), &report))
	require.Equal(t, "G", report["group"])
	lock := report["locks"].([]any)[0].(map[string]any)
	for _, field := range []string{"name", "state", "why", "token", "host", "pid", "user", "command", "job", "ttl_seconds", "age_seconds", "silence_seconds"} {
		require.Contains(t, lock, field)
	}
	require.Equal(t, "x", lock["name"])
	require.Equal(t, true, lock["job"])
	require.InDelta(t, 90, lock["ttl_seconds"], 0)
}

func TestWatch(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	watch := s.start("status", "--watch", "--every", "20ms")
	watch.Expect("nothing is held")
	s.hold("x")
	watch.Expect("\nx ")
	watch.Signal(os.Interrupt)
	got := watch.wait()
	require.True(t, diedOf(watch, syscall.SIGINT))
	require.NotContains(t, got.stdout, "\x1b", "it is no terminal")
	require.Contains(t, got.stderr, "stopped by signal")

	watch = s.start("status", "-w", "--json", "--every", "20ms")
	watch.Expect("}\n{")
	watch.Signal(syscall.SIGTERM)
	require.Equal(t, 143, watch.wait().code)
}

// What others have written must not reach the terminal of somebody who looks.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	const evil = "\x1b]0;owned\a\x1b[2J\u202e\r\nfake  held\u009b\U000e0001"
	s := newStation(t)
	s.hold(evil, "--ttl", "1h", "-E", "3")
	s.forge("forged", "evil"+"\x1b[2J"+" 1\n"+`{"v":1,"token":"\u001b[1m","host":"\u001b[31mhost","pid":7,"user":"\u001b[31m","command":"\u001b[2J\n","ttl_ms":1000000}`)
	s.forge("\x1b[5mgarbage", "\x1b[2J")
	require.NoError(t, os.WriteFile(filepath.Join(s.base, ".locks", "\x1b[7mfile"), nil, 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(s.base, ".multilock", "staging", "\x1b[7mleft"), 0o700))
	history, err := filepath.Glob(filepath.Join(s.base, ".multilock", "groups", ".locks", "history", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, history)
	file, err := os.OpenFile(history[0], os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = file.WriteString(`{"time":"2999-01-01T00:00:00Z","event":"\u001b[1m","name":"\u001b[2m","user":"\u001b[3m","command":"\u001b[4m","why":"\u001b[5m","signal":"\u001b[6m","by":{"host":"\u001b[7m"},"holder":{"host":"\u001b[8m","pid":1}}` + "\n")
	require.NoError(t, err)
	require.NoError(t, file.Close())

	for _, args := range [][]string{
		{"status"},
		{"status", "--json"},
		{"history"},
		{"history", "--json"},
		{"clean", "--dry-run", "-v"},
		{"break", evil},
		{"break", "forged"},
		{"break", "\x1b[5mgarbage"},
		{"run", "--name=" + evil, "--", "true"},
		{"run", "-n", "forged", "--", "true"},
		{"run", "-n", "\x1b[7mfile", "--", "true"},
		{"run", "--", "/nonexistent/\x1b[31m"},
		{"\x1b[31m"},
		{"run", "--\x1b[31m"},
	} {
		got := s.run(args...)
		for _, raw := range []string{"\x1b", "\a", "\r", "\u202e", "\u009b", "\U000e0001"} {
			require.NotContains(t, got.stdout, raw, "%q", args)
			require.NotContains(t, got.stderr, raw, "%q", args)
		}
	}
}

// forge puts a lock file with any content in place.
func (s *station) forge(name, content string) {
	s.t.Helper()
	dir := filepath.Join(s.base, ".locks", name)
	require.NoError(s.t, os.MkdirAll(dir, 0o700))
	require.NoError(s.t, os.WriteFile(filepath.Join(dir, name+".locked"), []byte(content), 0o600))
}
