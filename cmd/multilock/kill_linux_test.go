package main_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// helper waits for a process of this program that a command has started, and returns its process ID.
func (r *running) helper(s *station, argument string) int {
	r.t.Helper()
	found := 0
	s.eventually(argument+" has been started", func() bool {
		for _, pid := range childrenOf(r.PID()) {
			command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			if bytes.Contains(command, []byte("\x00"+argument)) {
				found = pid
			}
		}
		return found != 0
	})
	return found
}

func childrenOf(parent int) []int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	var children []int
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			pid, _ := strconv.Atoi(strings.Split(path, "/")[2])
			children = append(children, pid)
		}
	}
	return children
}

// When a runner is killed, its job's whole tree ends, and the next process acquires the lock immediately,
// with any TTL.
func TestKilledRunner(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	job := s.start(append([]string{"run", "-n", "x", "--ttl", "1h", "--grace", "50ms"}, stubborn...)...)
	job.Expect("ready")
	job.helper(s, "__guard")
	s.awaitNote("x")
	s.awaitTold("x")
	job.Signal(syscall.SIGKILL)
	job.wait() // for all processes that have its output open
	require.Equal(t, "again\n", s.must("run", "-q", "-n", "x", "--wait", "1m", "--", "echo", "again"))
	events := s.history("x")
	require.Equal(t, []string{"acquired", "broken", "acquired", "released"}, happened(events))
	require.Equal(t, events[0].Token, events[1].Token)
	require.NotEmpty(t, events[1].Why)
}

// The record of each attempt under one lock replaces the previous attempt's.
func TestEachAttemptIsNoted(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	const untilNoted = `until grep -q "\"pgid\":$$," "$1"; do sleep 0.01; done; exit $((2 - MULTILOCK_ATTEMPT))`
	note := filepath.Join(s.base, ".locks", "x", "x.job")
	require.Equal(t, 0, s.run("run", "-q", "-n", "x", "--once", "--retries", "1", "--", "sh", "-c", untilNoted, "sh", note).code)
	require.Equal(t, 2, s.result("x").Attempt)
}

// While a process of the job lives, the lock counts as held, even if its runner and its guard are dead.
func TestLivingJobOfADeadRunner(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	job := s.start("run", "-n", "x", "--", "sh", "-c", `sleep 1000 & echo "pid $!."; wait`)
	job.Expect(".")
	survivor := pidIn(t, job.Out.String())
	t.Cleanup(func() { _ = syscall.Kill(survivor, syscall.SIGKILL) })
	guard := job.helper(s, "__guard")
	s.awaitNote("x")
	require.NoError(t, syscall.Kill(guard, syscall.SIGKILL))
	job.Signal(syscall.SIGKILL)
	s.eventually("the command dies with its runner", func() bool { return len(childrenOf(job.PID())) == 0 })

	got := s.run("run", "-n", "x", "--", "true")
	require.Equal(t, 121, got.code)
	require.Contains(t, got.stderr, fmt.Sprintf("its job lives: process %d (sleep)", survivor))
	require.Equal(t, 121, s.run("break", "x").code)

	require.NoError(t, syscall.Kill(survivor, syscall.SIGKILL))
	job.wait()
	s.must("run", "-n", "x", "--wait", "1m", "--", "true")
}

// orphans are the ways in which a child can hide from its job.
var orphans = map[string]string{
	"background": `sleep 1000 &`,
	"setsid":     `setsid sleep 1000 &`,
	"timeout":    `timeout 1000 sleep 1000 &`,
}

// carriers returns the processes with an entry in their environment.
func carriers(entry string) []int {
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	var found []int
	for _, path := range environs {
		environ, err := os.ReadFile(path)
		if err == nil && bytes.Contains(append([]byte{0}, environ...), []byte("\x00"+entry+"\x00")) {
			pid, _ := strconv.Atoi(strings.Split(path, "/")[2])
			found = append(found, pid)
		}
	}
	return found
}

func killCarriers(token string) {
	for _, pid := range carriers("MULTILOCK_TOKEN=" + token) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// orphan leaves a lock whose runner was killed by the job, after the job had started a child that lives on.
// On a busy machine the guard may have ended the child first; then it tries again.
func (s *station) orphan(child string) (token string) {
	s.t.Helper()
	s.eventually("a child outlives its runner", func() bool {
		cmd := s.command("run", "-q", "-n", "x", "--ttl", "1h", "--wait", "forever", "--", "sh", "-c", child+` kill -KILL "$PPID"`)
		_ = cmd.Run()
		token = s.lock("x").Token
		s.t.Cleanup(func() { killCarriers(token) })
		return len(carriers("MULTILOCK_TOKEN="+token)) > 0
	})
	return token
}

// From its first instruction on, a job holds its lock on its host while any of its processes lives, in any
// process group; and no longer.
func TestChildOfAKilledRunnerKeepsTheLock(t *testing.T) {
	t.Parallel()
	for name, child := range orphans {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStation(t)
			token := s.orphan(child)
			got := s.run("run", "-n", "x", "--", "true")
			require.Equal(t, 121, got.code, got.stderr)
			require.Contains(t, got.stderr, "its job lives: process ")
			require.Equal(t, 121, s.run("break", "x").code)
			killCarriers(token)
			s.must("run", "-n", "x", "--wait", "1m", "--", "true")
			events := s.history("x")
			broke := slices.Index(happened(events), "broken")
			require.Contains(t, events[broke].Why, "no process")
		})
	}
}
