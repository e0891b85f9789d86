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

// strayJob is a shell that starts a worker which leaves its process group, notes both
// their numbers, and waits.
func strayJob(dir, start string) string {
	return start + " sh -c 'trap \"\" HUP INT QUIT; echo $$ >" + dir + "/new; mv " + dir + "/new " + dir + "/worker; exec sleep 1000' & " +
		"echo $$ >" + dir + "/new.a; mv " + dir + "/new.a " + dir + "/a; wait"
}

func pidOf(t *testing.T, dir, name string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	return pid
}

func (s *station) eventuallyGone(pid int) {
	s.t.Helper()
	s.eventually("process "+strconv.Itoa(pid)+" ends", func() bool { return !isAlive(pid) })
}

// isAlive is false for what has ended, reaped or not.
func isAlive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// Told to end, the runner ends all of its job before it gives the lock back: also what
// has left the job's process group, and what does not care for the signal.
func TestToldToEndTheWholeTree(t *testing.T) {
	t.Parallel()
	for name, sig := range map[string]syscall.Signal{"TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "QUIT": syscall.SIGQUIT} {
		for _, start := range []string{"timeout 1000", "setsid"} {
			t.Run(name+" "+start, func(t *testing.T) {
				t.Parallel()
				s, dir := newStation(t), t.TempDir()
				r := s.start("run", "-n", "x", "--", "sh", "-c", strayJob(dir, start))
				s.eventuallyThere(dir, "a", "worker")
				worker := pidOf(t, dir, "worker")
				r.Signal(sig)
				s.eventuallyFree("x")
				require.False(t, isAlive(worker), "the lock is free, and a part of its job is at work")
				r.wait()
			})
		}
	}
}

// The same of a batch that was told by SIGTERM, as its jobs were.
func TestBatchToldToEndTheWholeTree(t *testing.T) {
	t.Parallel()
	s, dir := newStation(t), t.TempDir()
	r := s.start("batch", s.list("a\t"+strayJob(dir, "setsid")))
	s.eventuallyThere(dir, "a", "worker")
	worker := pidOf(t, dir, "worker")
	r.Signal(syscall.SIGTERM)
	r.Err.Expect(t, "taking no more jobs")
	terminate(t, dir, "a")
	s.eventuallyFree("a")
	require.False(t, isAlive(worker))
	require.Equal(t, 143, r.wait().code)
}

// Who ends an allocation signals the job's processes and us, in any order. A job whose
// child was ended first, and that therefore exits with the signal's code, has not failed.
func TestToldAfterTheJob(t *testing.T) {
	t.Parallel()
	for name, sig := range map[string]syscall.Signal{"TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "INT": syscall.SIGINT} {
		// The shell passes its child's end on as an exit code, or dies itself.
		for how, victims := range map[string][]string{"code": {"child"}, "signal": {"a", "child"}} {
			for _, command := range []string{"run", "batch"} {
				t.Run(name+" "+how+" "+command, func(t *testing.T) {
					t.Parallel()
					s, dir := newStation(t), t.TempDir()
					text := "sh -c 'echo $$ >" + dir + "/new; mv " + dir + "/new " + dir + "/child; exec sleep 1000'; code=$?; test -e " + dir + "/again || exit $code"
					text = "echo $$ >" + dir + "/new.a; mv " + dir + "/new.a " + dir + "/a; test -e " + dir + "/again || { " + text + "; }"
					args := []string{"run", "-n", "a", "--once", "--", "sh", "-c", text}
					if command == "batch" {
						args = []string{"batch", s.list("a\t" + text)}
					}
					r := s.start(args...)
					s.eventuallyThere(dir, "a", "child")
					shell, child := pidOf(t, dir, "a"), pidOf(t, dir, "child")
					for _, victim := range victims {
						require.NoError(t, syscall.Kill(pidOf(t, dir, victim), sig))
					}
					s.eventuallyGone(shell)
					r.Signal(sig)
					s.eventuallyFree("a")
					require.False(t, isAlive(child))
					got := r.wait()
					require.Regexp(t, "will (be )?run again", got.stderr)
					require.NoError(t, os.WriteFile(filepath.Join(dir, "again"), nil, 0o600))
					require.Zero(t, s.run(args...).code)
					require.Equal(t, 1, s.result("a").Attempt)
				})
			}
		}
	}
}
