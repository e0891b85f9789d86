package cli_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/etcdlab"
	"github.com/multilock/go/integration/pglab"
)

// period is long enough for several commands, even on a busy machine.
const period = 10 * time.Second

// kitchens are the places where hosts can share a cooking lock.
var kitchens = map[string]func(*testing.T) string{
	"directory": func(t *testing.T) string { return "cook+file://" + t.TempDir() + "?" },
	"mongodb":   func(t *testing.T) string { return "cook+" + mongoURL(newMongo(t), "locks") + "&" },
	"etcd":      func(t *testing.T) string { return "cook+" + etcdlab.Start(t, 1).URL("locks") + "?" },
	"postgres":  func(t *testing.T) string { return "cook+" + pglab.Start(t, pglab.Options{}).URL("schema=locks") + "&" },
}

// hosts returns two hosts that share a kitchen. Each has its own notes.
func hosts(t *testing.T, source string) (a, b *station) {
	t.Helper()
	source = fmt.Sprintf("MULTILOCK_SOURCE=%speriod=%s", source, period)
	return newStation(t, source), newStation(t, source)
}

// In each period one host runs the job, even if that host fails, and in the next period another host
// does. In between the lock stays held.
func TestCookTakesTurns(t *testing.T) {
	t.Parallel()
	for name, open := range kitchens {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := hosts(t, open(t))
			first := a.run("run", "-v", "-n", "x", "--", "echo", "first")
			require.Equal(t, 0, first.code, first.stderr)
			require.Equal(t, "first\n", first.stdout)
			require.Contains(t, first.stderr, "it stays taken until about ")
			for _, s := range []*station{a, b} {
				cold := s.run("run", "-n", "x", "--", "echo", "never")
				require.Equal(t, 121, cold.code, cold.stderr)
				require.Empty(t, cold.stdout)
				require.Contains(t, cold.stderr, ": echo first (it ")
				require.NotContains(t, cold.stderr, "clear it with", "nothing can clear it")
				require.Equal(t, ended{0, "", ""}, s.run("run", "-n", "x", "-q", "-E", "0", "--", "true"))
			}
			// As from cron: no run waits, and each run remembers what earlier ones saw.
			b.eventually("the other host gets its turn", func() bool { return b.run("run", "-q", "-n", "x", "--", "true").code == 0 })
			require.Equal(t, "third\n", a.must("run", "-q", "-n", "x", "--wait", "forever", "--", "echo", "third"))
		})
	}
}

// A job is ended when its time is over, even if it ignores signals, and is gone when the next job
// starts.
func TestCookEndsTheJob(t *testing.T) {
	t.Parallel()
	for name, job := range map[string]string{
		"that listens":       `echo $$ > $0; echo ready; exec cat`,
		"that does not":      `trap '' TERM; echo $$ > $0; echo ready; exec cat`,
		"that leaves a copy": `trap '' TERM; exec 3<&0; sh -c 'echo $$ > $0; echo ready; exec cat <&3' $0 & wait`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := requireAlone(t, job)
			require.Regexp(t, `(?m)^multilock: the time of lock "x" is over in \d+(\.\d+)?m?s; ending the job\nmultilock: lock "x": its time is over: the job was terminated; the job ended with code 1(43|37)$`, got.stderr)
		})
	}
	t.Run("that has run for too long before", func(t *testing.T) {
		t.Parallel()
		got := requireAlone(t, `trap '' TERM; echo $$ > $0; echo ready; exec cat`, "--max-runtime", "2s")
		require.Contains(t, got.stderr, "the limit of --max-runtime")
	})
}

// lookForIt prints "alone" if the process is gone, or dead and not yet reaped by its new parent.
const lookForIt = `case "$(cut -d' ' -f3 /proc/$(cat "$0")/stat 2>/dev/null)" in ''|Z|X) echo alone ;; esac`

// requireAlone requires that nothing is left of one host's job when another host gets its turn.
func requireAlone(t *testing.T, job string, options ...string) ended {
	t.Helper()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("needs /proc to find running processes")
	}
	a, b := hosts(t, kitchens["directory"](t))
	pid := filepath.Join(t.TempDir(), "pid")
	holder := a.holding(a.command(slices.Concat([]string{"run", "-n", "x"}, options, []string{"--", "sh", "-c", job, pid})...))
	next := b.must("run", "-q", "-n", "x", "--wait", "forever", "--", "sh", "-c", lookForIt, pid)
	require.Equal(t, "alone\n", next)
	got := holder.wait()
	require.Equal(t, 124, got.code, got.stderr)
	return got
}

// A runner that was paused until others had their turn ends its job when it resumes.
func TestCookRunnerWakesTooLate(t *testing.T) {
	t.Parallel()
	a, b := hosts(t, kitchens["directory"](t))
	holder := a.holding(a.command("run", "-n", "x", "--grace", "10m", "--", "sh", "-c", `trap '' TERM; echo ready; exec cat`))
	holder.Signal(syscall.SIGSTOP)
	b.must("run", "-q", "-n", "x", "--wait", "forever", "--", "true")
	holder.Signal(syscall.SIGCONT)
	got := holder.wait()
	require.Equal(t, 124, got.code, got.stderr)
	require.Contains(t, got.stderr, "its time is over")
}

// The job's environment says how much time is left.
func TestCookTellsTheTime(t *testing.T) {
	t.Parallel()
	s := newStation(t, "MULTILOCK_SOURCE=cook+file://"+t.TempDir()+"?period=1h40m")
	before := time.Now()
	out := strings.Fields(s.must("run", "-n", "x", "--grace", "10m", "--", "sh", "-c", "echo $MULTILOCK_REMAINING $MULTILOCK_UNTIL $MULTILOCK_FENCE"))
	require.Len(t, out, 3)
	remaining, err := strconv.Atoi(out[0])
	require.NoError(t, err)
	const atMost = 70 * 60 // four fifths of the period, less the grace
	require.LessOrEqual(t, remaining, atMost)
	require.Greater(t, remaining, atMost-int(watchdog.Seconds()))
	until, err := strconv.ParseInt(out[1], 10, 64)
	require.NoError(t, err)
	require.WithinRange(t, time.Unix(until, 0), before.Add(time.Duration(remaining-1)*time.Second), time.Now().Add(atMost*time.Second))
}

// status names the holder and the latest end of its turn.
func TestCookStatus(t *testing.T) {
	t.Parallel()
	for name, open := range kitchens {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStation(t, "MULTILOCK_SOURCE="+open(t)+"period=1h")
			require.Equal(t, "free", s.lock("x").State)
			s.must("run", "-n", "x", "--", "true")
			host, err := os.Hostname()
			require.NoError(t, err)
			held := s.lock("x")
			require.Equal(t, "held", held.State)
			require.Equal(t, host, held.Host)
			require.Equal(t, "true", held.Command)
			require.InDelta(t, 3600, held.TTL, 0)
			require.Regexp(t, `^it may be at work until \S+ \S+ by the clock of `+host+`; a process that has seen it untouched for 1h0m0s`, held.Why)
			if name != "mongodb" {
				require.Len(t, s.locks(), 1)
			} else {
				require.Contains(t, s.run("status").stderr, "this source cannot list its locks; write: status NAME")
			}
			got := s.run("doctor", "--json")
			require.Contains(t, []int{0, 1}, got.code, got.stdout)
			var report struct {
				Findings []finding
			}
			require.NoError(t, json.Unmarshal([]byte(got.stdout), &report))
			at := slices.IndexFunc(report.Findings, func(f finding) bool { return f.Subject == "trial" })
			require.GreaterOrEqual(t, at, 0)
			require.Equal(t, "ok", report.Findings[at].Severity)
			require.Contains(t, report.Findings[at].Text, "none was acquired")
		})
	}
}

// What a cooking lock cannot do is rejected with the reason, before anything is done.
func TestCookRefuses(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	s := newStation(t, "MULTILOCK_SOURCE=cook+file://"+base+"?period=1h")
	const promptly = "this source frees no lock before its time is over (a lock that is released stays taken until its period is over)"
	for args, want := range map[string]string{
		"run -n x --once -- true":                        "run: --once: this source keeps no results of jobs (a register holds one value and no results)",
		"run --slots 2 -- true":                          "run: --slots: " + promptly,
		"run --ttl 5m -- true":                           "run: --ttl: a lock of this source lasts for its period",
		"run --min-hold 5m -- true":                      "run: --min-hold: a lock of this source lasts for its period",
		"run --on-lost ignore -- true":                   "run: --if-lost ignore: a lock of this source lasts for its period",
		"acquire":                                        "acquire: " + promptly,
		"acquire --source cook+etcd://h/a?period=1h":     "acquire: " + promptly,
		"acquire --source cook+postgres://h/a?period=1h": "acquire: " + promptly,
		"release --token x":                              "release: " + promptly,
		"break x --force":                                "break: this source cannot break a lock (a lock ends by time alone, and cannot be broken)",
		"clean":                                          "clean: this source does not report whether a holder is dead",
		"wait":                                           "wait: this source cannot list whether anything in it is held (each register has to be asked for itself)",
		"status -g G --source cook+mongodb://h/a.b?period=1h": "--group: there are no groups in cook+mongodb://h/a.b?period=1h",
	} {
		got := s.run(strings.Fields(args)...)
		require.Equal(t, 125, got.code, "%s: %s", args, got.stderr)
		require.Contains(t, got.stderr, want, args)
		require.Empty(t, got.stdout)
	}
	entries, err := os.ReadDir(base)
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestCookParameters(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	file, mongo := "cook+file://"+base, "cook+mongodb://"+deaf(t)+"/a.b"
	etcd, postgres := "cook+etcd://"+deaf(t)+"/a", "cook+postgres://"+deaf(t)+"/a"
	for source, want := range map[string]string{
		file:                              "the period is missing; write period=5m",
		mongo:                             "the period is missing; write period=5m",
		file + "?period=5m&perod=6m":      "the parameter perod is unknown; there is period",
		mongo + "?period=5m&peroid=6s":    "the parameter peroid is unknown; there are period, and those of a MongoDB connection string",
		etcd:                              "the period is missing; write period=5m",
		postgres:                          "the period is missing; write period=5m",
		etcd + "?period=5m&peroid=6s":     "the parameter \"peroid\"",
		postgres + "?period=5m&peroid=6s": "the parameter \"peroid\" is unknown",
		file + "?period=5m&period=6m":     "the parameter period is given twice",
		file + "?period=0":                "the parameter period: must not be 0",
		file + "?period=often":            `the parameter period: invalid duration "often"`,
		file + "?period=1ms":              "must be at least 400ms",
		"cook+file://elsewhere" + base + "?period=5m": "write cook+file:///absolute/path?period=5m",
		"cook+file:?period=5m":                        "write cook+file:///absolute/path?period=5m",
		"cook+file:///nonexistent?period=5m":          "does not exist; create it",
	} {
		got := newStation(t).run("run", "--source", source, "--", "true")
		require.Equal(t, 125, got.code, source)
		require.Contains(t, got.stderr, want, source)
	}
}

// In messages a relative directory still refers to the command's working directory, and unusual names
// work.
func TestCookDirectories(t *testing.T) {
	t.Parallel()
	base := filepath.Join(t.TempDir(), "the base's dir")
	require.NoError(t, os.Mkdir(base, 0o700))
	s := newStation(t)
	cmd := s.command("status", "--source", "cook+file:"+url.PathEscape(filepath.Base(base))+"?period=1h")
	cmd.Dir = filepath.Dir(base)
	got := s.begin(cmd).end()
	require.Zero(t, got.code, got.stderr)
	where := "cook+file://" + (&url.URL{Path: base}).EscapedPath() + "?period=1h"
	require.Contains(t, got.stdout, "nothing is held in "+where+", group .locks\n")
	s.must("run", "--source", where, "-g", "G", "-n", "a b", "--", "true")
	require.FileExists(t, filepath.Join(base, ".multilock", "groups", "G.cook", "done", "a b"))
}
