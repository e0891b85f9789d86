//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestStatus(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	require.Equal(t, ended{0, "nothing is held in " + s.base + "/.locks\n" + s.base + "/.locks has never been used: is that the place (-d or --source) and the group (-g)?\n", ""}, s.run("status"))
	require.Empty(t, s.must("status", "-q"))
	s.requireUntouched()

	s.hold("nightly")
	s.hold("two words")
	s.dead("old")
	s.awaitNote("nightly")
	lines := strings.Split(strings.TrimSpace(s.must("ls")), "\n")
	require.Len(t, lines, 4)
	require.Equal(t, []string{"NAME", "STATE", "HOST", "PID", "USER", "HELD", "FOR", "LAST", "HEARTBEAT", "EXPIRES", "COMMAND", "WHY"}, strings.Fields(lines[0]))
	require.Regexp(t, `^nightly +held +\S+ +\d+ +\S+ +\S+ +\S+ +1m\d\ds +sh -c 'echo ready; exec cat' +its job lives: `, lines[1])
	require.Regexp(t, `^old +dead .* now .* acquire for pid \d+ `, lines[2])
	require.Regexp(t, `^"two words" +held `, lines[3])

	some := s.must("status", "old", "never")
	require.NotContains(t, some, "nightly")
	require.Regexp(t, `(?m)^never +free +- +- +- +- +- +- +- +no process holds it$`, some)
}

func TestStatusJSON(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	require.JSONEq(t, `{"schema": 1, "base": "`+s.base+`", "group": "G", "locks": [], "queues": [],
		"results": {"done": 0, "failed": 0, "retry": 0, "unknown": 0, "jobs": []}}`, s.must("status", "--json", "-g", "G"))
	s.hold("x", "-g", "G", "--ttl", "90s")
	var report map[string]any
	require.NoError(t, json.Unmarshal([]byte(s.must("status", "--json", "-g", "G")), &report))
	require.Equal(t, "G", report["group"])
	lock := report["locks"].([]any)[0].(map[string]any)
	for _, field := range []string{"name", "state", "why", "token", "host", "pid", "user", "command", "job", "ttl_seconds", "held_seconds", "heartbeat_age_seconds", "expires_seconds"} {
		require.Contains(t, lock, field)
	}
	require.Equal(t, "x", lock["name"])
	require.Equal(t, true, lock["job"])
	require.InDelta(t, 90, lock["ttl_seconds"], 0)
}

// No name and no record, by any writer, moves a cursor or breaks a line.
func TestStrangersWordsAreShownHarmless(t *testing.T) {
	t.Parallel()
	const name = "\x9b31m"
	s := newStation(t)
	dir := filepath.Join(s.base, ".locks", name)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, name+".locked"), []byte("\x9bhost\x85 12\n{\x9b"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "\x9bother"), nil, 0o600))
	for _, args := range [][]string{
		{"status"}, {"status", "--json"}, {"status", name}, {"status", "-q"}, {"run", "-n", name, "--", "true"}, {"break", name}, {"clean", "-v"}, {"wait", "--wait", "1ms"},
		{"run", "-n", name + "2", "--once", "--", "false"}, {"status", "--results"}, {"history"}, {"history", "--json"}, {"report", "-o", "-"}, {"clean", "--results", "-v"},
		{"break", name, "--force", "--now"}, {"doctor", "-d", s.base + name},
	} {
		got := s.run(args...)
		for _, text := range []string{got.stdout, got.stderr} {
			require.True(t, utf8.ValidString(text), "%q: %q", args, text)
			require.NotRegexp(t, `[^\PC\n]`, text, "%q: %q", args, text)
		}
	}
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

// While a host works on a list, status shows the rate and the remaining time.
func TestPaceOfAList(t *testing.T) {
	t.Parallel()
	s, w := newStation(t), newWitness(t)
	lines, proceed := fifoJobs(t, w, 1, "true")
	list := s.list(append(w.jobs(8, "sleep 0.1"), "BARRIER", "last\t"+lines[0][len("job000\t"):])...)
	working := s.start("batch", "-q", "-j1", list)
	s.eventually("the last job runs", func() bool { return strings.Contains(s.must("status"), "8 of 9 jobs done") })
	require.Regexp(t, `8 of 9 jobs done \(88 % ended\), 1 claimed\n[0-9.]+ jobs/(s|min), about \S+ left\n`, s.must("status"))
	require.Regexp(t, `"jobs_per_second": [0-9.]+,\s+"remaining_seconds": [0-9.]+`, s.must("status", "--json"))
	require.NoError(t, os.WriteFile(proceed, nil, 0o600))
	require.Zero(t, working.wait().code)
	require.NotContains(t, s.must("status"), "left")
}

// Text that other users wrote must not control the terminal of a reader.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	const evil = "x\x1b]0;owned\a\x1b[2J\u202e\r\nfake  held\u009b\U000e0001x"
	s := newStation(t)
	s.hold(evil, "--ttl", "1h", "-E", "3")
	s.awaitTold(evil)
	s.forge("forged", "evil"+"\x1b[2J"+" 1\n"+`{"v":1,"token":"\u001b[1m","host":"\u001b[31mhost","pid":7,"user":"\u001b[31m","command":"\u001b[2J\n","ttl_ms":1000000}`)
	s.forge("x\x1b[5mgarbage", "\x1b[2J")
	require.NoError(t, os.WriteFile(filepath.Join(s.base, ".locks", "x\x1b[7mfile"), nil, 0o600))
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
		{"break", "x\x1b[5mgarbage"},
		{"run", "--name=" + evil, "--", "true"},
		{"run", "-n", "forged", "--", "true"},
		{"run", "-n", "x\x1b[7mfile", "--", "true"},
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

// forge creates a lock file with any content.
func (s *station) forge(name, content string) {
	s.t.Helper()
	dir := filepath.Join(s.base, ".locks", name)
	require.NoError(s.t, os.MkdirAll(dir, 0o700))
	require.NoError(s.t, os.WriteFile(filepath.Join(dir, name+".locked"), []byte(content), 0o600))
}

func TestHistory(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	require.Empty(t, s.history())
	require.Equal(t, 1, strings.Count(s.must("history"), "\n"), "the heading alone")
	s.requireUntouched()

	s.must("run", "-n", "a", "--", "true")
	require.Equal(t, 5, s.run("run", "-n", "b", "--", "sh", "-c", "exit 5").code)
	require.Equal(t, 127, s.run("run", "-n", "a", "--", "/nonexistent").code)
	require.Equal(t, 137, s.run("run", "-n", "b", "--", "sh", "-c", "kill -KILL $$").code)
	s.must("run", "-n", "a", "-g", "another", "--", "true")

	events := s.history()
	require.Equal(t, []string{"acquired", "released", "acquired", "released", "acquired", "released", "acquired", "released"}, happened(events))
	require.Equal(t, 0, *events[1].Exit)
	require.Equal(t, "true", events[1].Command)
	require.Equal(t, 5, *events[3].Exit)
	require.Equal(t, "sh -c 'exit 5'", events[3].Command)
	require.Equal(t, 127, *events[5].Exit, "what the run ended with")
	require.Contains(t, events[5].Why, "command not found")
	require.Equal(t, 137, *events[7].Exit)
	require.Equal(t, "killed", events[7].Signal)
	require.Equal(t, uint64(2), events[7].Fence)
	require.Equal(t, events[6].Token, events[7].Token)
	require.Equal(t, events[6].PID, events[7].PID)

	require.Equal(t, events[2:4], s.history("b", "--since", "1h")[:2])
	require.Equal(t, append(events[0:2:2], events[4:6]...), s.history("a"))
	require.Equal(t, events, s.history("a", "-n", "b"))
	require.Equal(t, events[5:], s.history("--limit", "3"))
	require.Empty(t, s.history("--since", "0"))
	require.Empty(t, s.history("c"))
	require.Equal(t, []string{"acquired", "acquired"}, happened(s.history("b", "--event", "acquired")))
	require.Equal(t, events, s.history("--event", "acquired,released,lost", "--until", "2999-01-01", "--since", "2026-01-01 00:00"))
	require.Empty(t, s.history("--until", "2026-01-01T00:00:00Z"))
	require.Contains(t, s.run("history", "--event", "held").stderr, `there is no event "held"; choose of acquired, released,`)
	require.Contains(t, s.run("history", "--since", "1h", "--until", "2h").stderr, "is before --since")
	require.Contains(t, s.run("history", "--since", "yesterday").stderr, `"yesterday" is no time; write 2h or 7d ago, `)

	table := s.must("history", "b")
	require.Regexp(t, `^TIME \(\S+ [+-]\d\d:\d\d\) +NAME +EVENT +HOST +PID +USER +DETAILS\n`, table)
	require.Regexp(t, `\n\d{4}-\d\d-\d\d \d\d:\d\d:\d\d +b +released +\S+ +\d+ +\S+ +exit 5, held \S+, fence 1, sh -c 'exit 5'\n`, table)
	require.Contains(t, table, "exit 137, signal: killed")
}

// recorded returns a group with all kinds of results.
func recorded(t *testing.T) *station {
	s := newStation(t)
	for i := range 3 {
		s.must("run", "--once", "-n", fmt.Sprintf("good %d", i), "--", "true")
	}
	require.Equal(t, 3, s.run("run", "--once", "-n", "bad", "--", "sh", "-c", "exit 3").code)
	return s
}

func TestStatusSumsUpResults(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	require.NotContains(t, s.must("status"), "done")
	s = recorded(t)
	text := s.must("status")
	require.Regexp(t, `(?m)^3 done, 1 failed: bad \(exit 3 on \S+, \S+ ago\)$`, text)
	require.NotContains(t, s.must("status", "-q"), "done")

	s.hold("held", "--once")
	text = s.must("status")
	require.Regexp(t, `(?m)^held +held `, text)
	require.Regexp(t, `(?m)^3 done, 1 failed`, text)

	for i := range 5 {
		require.Equal(t, 4, s.run("run", "--once", "-n", fmt.Sprintf("worse%d", i), "--", "sh", "-c", "exit 4").code)
	}
	require.Contains(t, s.must("status"), "3 done, 6 failed: bad (")
	require.Contains(t, s.must("status"), ", and 3 more (see --results)\n")
}

func TestStatusListsResults(t *testing.T) {
	t.Parallel()
	s := recorded(t)
	table := s.must("status", "--results")
	require.Regexp(t, `(?m)^NAME +RESULT +EXIT +ATTEMPT +HOST +USER +ENDED +DURATION +COMMAND +WHY$`, table)
	require.Len(t, regexp.MustCompile(`(?m)^"good \d" +done +0 +1 `).FindAllString(table, -1), 3)
	require.Regexp(t, `(?m)^bad +failed +3 +1 +\S+ +\S+ +\S+ ago +\S+ +sh -c 'exit 3'`, table)

	one := s.must("status", "bad")
	require.Regexp(t, `(?m)^bad +free`, one)
	require.Regexp(t, `(?m)^bad +failed +3`, one)
	require.NotContains(t, one, "good")
	require.NotContains(t, s.must("status", "none"), "RESULT")
	require.Equal(t, Result{Name: "bad", State: "failed", Exit: 3, Attempt: 1, Command: "sh -c 'exit 3'"}, anywhere(s.result("bad")))
}

// anywhere removes the fields that differ between runs.
func anywhere(r Result) Result {
	r.Host, r.User, r.Token = "", "", ""
	return r
}

func TestCleanResults(t *testing.T) {
	t.Parallel()
	s := recorded(t)
	require.Equal(t, 4, strings.Count(s.must("clean", "--results", "--dry-run"), "would delete"))
	require.Contains(t, s.must("status"), "3 done, 1 failed")
	require.Contains(t, s.must("clean"), "nothing to clean", "without --results they are left alone")

	require.Equal(t, "deleted the result of bad\n", s.must("clean", "--results", "bad", "none"))
	require.Contains(t, s.must("status"), "3 done\n")
	require.Equal(t, "no results to delete\n", s.must("clean", "--results", "none"))

	holder := s.hold("good 1")
	for _, options := range [][]string{{"--dry-run"}, nil} {
		got := s.run(append([]string{"clean", "--results"}, options...)...)
		require.Equal(t, 121, got.code)
		require.Contains(t, got.stderr, `lock "good 1" is held by`)
	}
	require.Equal(t, "done", s.result("good 1").State)
	require.Equal(t, Result{}, s.result("good 2"))
	holder.end()
	require.Equal(t, "deleted the result of \"good 1\"\n", s.must("clean", "--results"))
	events := s.history("good 1")
	require.Equal(t, "deleted", events[len(events)-1].What)
}
