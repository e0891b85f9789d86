//go:build unix

package main_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// stubborn is a job with a grandchild, both of which ignore SIGTERM. The test
// that runs it would hang on its output if one of them were left.
var stubborn = []string{"--", "sh", "-c", `trap "" TERM; (sleep 1000; true) & echo ready; wait; sleep 1000`}

func TestMaxRuntimeEndsTheWholeTree(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	got := s.run(append([]string{"run", "-n", "x", "--max-runtime", "200ms", "--grace", "50ms"}, stubborn...)...)
	require.Equal(t, 124, got.code)
	require.Contains(t, got.stderr, "the job has run for 200ms, the limit of --max-runtime; ending it")
	require.Equal(t, "free", s.lock("x").State)
	last := s.history("x")[1]
	require.Equal(t, 137, *last.Exit)
	require.Contains(t, last.Why, "--max-runtime")
}

func TestMaxRuntimeAsksBeforeItKills(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	got := s.run("run", "--max-runtime", "200ms", "--grace", "1h", "--", "sh", "-c", `trap "echo asked; kill -9 \$! 2>/dev/null; exit 5" TERM; sleep 1000 & wait`)
	require.Equal(t, 124, got.code, "the limit, whatever the job says to it")
	require.Equal(t, "asked\n", got.stdout)
}

func TestMinHoldKeepsTheLock(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	holder := s.start("run", "-n", "x", "--min-hold", "1h", "--", "sh", "-c", "echo pid $$.")
	holder.Expect(".")
	job := pidIn(t, holder.Out.String())
	s.eventually("the job ends", func() bool { return syscall.Kill(job, 0) != nil })
	require.Equal(t, 121, s.run("run", "-n", "x", "--", "true").code)
	holder.Signal(syscall.SIGTERM)
	require.Zero(t, holder.wait().code, "the job was done")
	s.must("run", "-n", "x", "--min-hold", "1ms", "--", "true")
}

// pidIn finds the number in "pid N.".
func pidIn(t *testing.T, text string) int {
	t.Helper()
	_, number, _ := strings.Cut(text, "pid ")
	number, _, _ = strings.Cut(number, ".")
	pid, err := strconv.Atoi(number)
	require.NoError(t, err, text)
	return pid
}

// breakUnder breaks the lock under a run whose job runs.
func (s *station) breakUnder(name string) {
	s.t.Helper()
	require.Contains(s.t, s.must("break", name, "--force"), "broke lock")
}

func TestOnLost(t *testing.T) {
	t.Parallel()
	// The grace of an hour does not count: the time that is left of the TTL does.
	for _, what := range []string{"default", "term", "kill"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := newStation(t)
			args := []string{"run", "-n", "x", "--ttl", "3s", "--grace", "1h"}
			if what != "default" {
				args = append(args, "--on-lost", what)
			}
			job := s.start(append(args, stubborn...)...)
			job.Expect("ready")
			s.awaitNote("x")
			s.breakUnder("x")
			got := job.wait()
			require.Equal(t, 122, got.code)
			require.Contains(t, got.stderr, `lock "x" is lost`)
			require.Contains(t, got.stderr, "ending the job")
			events := s.history("x")
			require.Equal(t, []string{"acquired", "broke", "lost"}, happened(events))
			require.Contains(t, events[1].Why, "by force, though held: its job lives")
			require.Equal(t, 137, *events[2].Exit)
		})
	}
}

func TestOnLostTermAsksFirst(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	job := s.start("run", "-n", "x", "--ttl", "10s", "--", "sh", "-c", `trap "echo asked; kill -9 \$! 2>/dev/null; exit 0" TERM; sleep 1000 & echo ready; wait`)
	job.Expect("ready")
	s.breakUnder("x")
	got := job.wait()
	require.Equal(t, 122, got.code, "what was lost is lost, however well the job took it")
	require.Equal(t, "ready\nasked\n", got.stdout)
}

func TestOnLostIgnore(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	job := s.hold("x", "--ttl", "2s", "--on-lost", "ignore")
	s.breakUnder("x")
	job.Err.Expect(t, "the job goes on (--on-lost ignore)")
	other := s.hold("x")
	_, err := job.In.Write([]byte("still here\n"))
	require.NoError(t, err)
	got := job.end()
	require.Equal(t, 122, got.code)
	require.Equal(t, "ready\nstill here\n", got.stdout)
	require.Equal(t, "held", s.lock("x").State, "the loser leaves the other's lock alone")
	require.Zero(t, other.end().code)
}

func TestOnLostIgnoreStillHasALimit(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	args := []string{"run", "-n", "x", "--ttl", "1s", "--on-lost", "ignore", "--max-runtime", "1s", "--grace", "50ms"}
	job := s.start(append(args, stubborn...)...)
	job.Expect("ready")
	require.NoError(t, os.RemoveAll(filepath.Join(s.base, ".locks", "x")))
	require.Equal(t, 124, job.wait().code)
}

// A lock that is lost while a job that is over its limit still has its grace: it is
// killed before others can have the lock, all the same.
func TestLostInTheGraceOfMaxRuntime(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	job := s.start(append([]string{"run", "-n", "x", "--ttl", "2s", "--max-runtime", "200ms", "--grace", "1h"}, stubborn...)...)
	job.Expect("ready")
	job.Err.Expect(t, "the limit of --max-runtime")
	s.breakUnder("x")
	require.Equal(t, 124, job.wait().code)
}
