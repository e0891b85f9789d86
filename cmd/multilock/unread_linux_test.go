package main_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/cmd/multilock/clitest"
)

// fullPipe returns the end of a full pipe that no process reads.
func fullPipe(t *testing.T) *os.File {
	t.Helper()
	var fds [2]int
	require.NoError(t, unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK))
	t.Cleanup(func() { _ = unix.Close(fds[0]) })
	for _, chunk := range []int{4096, 1} {
		for {
			if _, err := unix.Write(fds[1], make([]byte, chunk)); err != nil {
				require.ErrorIs(t, err, unix.EAGAIN)
				break
			}
		}
	}
	require.NoError(t, unix.SetNonblock(fds[1], false))
	return os.NewFile(uintptr(fds[1]), "full pipe")
}

// startUnread starts the binary with messages that no process reads.
func (s *station) startUnread(args ...string) *running {
	s.t.Helper()
	cmd, unread := s.command(args...), fullPipe(s.t)
	in, err := cmd.StdinPipe()
	require.NoError(s.t, err)
	out := clitest.NewOutput()
	cmd.Stdout, cmd.Stderr = out, unread
	require.NoError(s.t, cmd.Start())
	require.NoError(s.t, unread.Close())
	return &running{clitest.Adopt(s.t, cmd, in, out, clitest.NewOutput()), s.t}
}

// If no process reads our messages (a full pipe), the job is still terminated, the lock is released, and the
// program ends.
func TestRunWhoseMessagesNobodyReads(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		options []string
		meet    func(s *station, r *running)
		code    int
	}{
		"over its limit": {[]string{"--max-runtime", ample, "--grace", "50ms"}, func(*station, *running) {}, 124},
		"lost":           {[]string{"--ttl", "3s"}, func(s *station, _ *running) { s.breakUnder("x") }, 122},
		"told to end":    {[]string{"--once", "-v"}, func(_ *station, r *running) { r.Signal(syscall.SIGTERM) }, 143},
		"done":           {[]string{"-v", "--json"}, func(_ *station, r *running) { _ = r.In.Close() }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStation(t)
			r := s.startUnread(append(append([]string{"run", "-n", "x"}, one.options...), append([]string{"--"}, clitest.WaitingJob()...)...)...)
			r.Expect("ready")
			one.meet(s, r)
			s.eventuallyFree("x")
			require.Equal(t, one.code, r.wait().code)
		})
	}
}

func TestBatchWhoseMessagesNobodyReads(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		meet func(s *station, r *running, dir string)
		code int
	}{
		"drained": {func(s *station, r *running, dir string) {
			r.Signal(os.Interrupt)
			require.NoError(s.t, os.WriteFile(filepath.Join(dir, "proceed"), nil, 0o600))
		}, 0},
		"hung up": {func(_ *station, r *running, _ string) { r.Signal(syscall.SIGHUP) }, 129},
		"a lost lock": {func(s *station, _ *running, dir string) {
			s.breakUnder(lockOf(1))
			s.eventually("the job is run again", func() bool { return s.result("a").State == "done" })
			require.NoError(s.t, os.WriteFile(filepath.Join(dir, "proceed"), nil, 0o600))
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStation(t)
			lines, dir := pidJobs(t, "", "a", "b")
			if name == "a lost lock" {
				lines[0] = "a\ttest -e " + dir + "/a || { " + strings.TrimPrefix(lines[0], "a\t") + "; }"
			}
			r := s.startUnread("batch", "-j2", "--ttl", "3s", "-v", s.list(lines...))
			s.eventuallyThere(dir, "a", "b")
			one.meet(s, r, dir)
			require.Equal(t, one.code, r.wait().code)
			s.eventuallyFree(lockOf(1))
			s.eventuallyFree(lockOf(2))
		})
	}
}

// strayJob returns a shell script that starts a worker outside of its process group, writes both process IDs
// to files, and waits.
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

// isAlive is false for an ended process, reaped or not.
func isAlive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// A terminated runner ends all of its job before it releases the lock, including processes that left the
// job's process group, or that ignore the signal.
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

// The same applies to a batch that received SIGTERM together with its jobs.
func TestBatchToldToEndTheWholeTree(t *testing.T) {
	t.Parallel()
	s, dir := newStation(t), t.TempDir()
	r := s.start("batch", s.list("a\t"+strayJob(dir, "setsid")))
	s.eventuallyThere(dir, "a", "worker")
	worker := pidOf(t, dir, "worker")
	r.Signal(syscall.SIGTERM)
	r.Err.Expect(t, "taking no more jobs")
	terminate(t, dir, "a")
	s.eventuallyFree(lockOf(1))
	require.False(t, isAlive(worker))
	require.Equal(t, 143, r.wait().code)
}

// At the end of an allocation the job's processes and the runner are signalled in any order. If a job's child
// ended first, and the job therefore exits with the signal's code, it has not failed.
func TestToldAfterTheJob(t *testing.T) {
	t.Parallel()
	for name, sig := range map[string]syscall.Signal{"TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "INT": syscall.SIGINT} {
		// The shell returns its child's end as an exit code, or is killed itself.
		for how, victims := range map[string][]string{"code": {"child"}, "signal": {"a", "child"}} {
			for _, command := range []string{"run", "batch"} {
				t.Run(name+" "+how+" "+command, func(t *testing.T) {
					t.Parallel()
					s, dir := newStation(t), t.TempDir()
					text := "sh -c 'echo $$ >" + dir + "/new; mv " + dir + "/new " + dir + "/child; exec sleep 1000'; code=$?; test -e " + dir + "/again || exit $code"
					text = "echo $$ >" + dir + "/new.a; mv " + dir + "/new.a " + dir + "/a; test -e " + dir + "/again || { " + text + "; }"
					args, lock := []string{"run", "-n", "a", "--once", "--", "sh", "-c", text}, "a"
					if command == "batch" {
						args, lock = []string{"batch", s.list("a\t" + text)}, lockOf(1)
					}
					r := s.start(args...)
					s.eventuallyThere(dir, "a", "child")
					shell, child := pidOf(t, dir, "a"), pidOf(t, dir, "child")
					for _, victim := range victims {
						require.NoError(t, syscall.Kill(pidOf(t, dir, victim), sig))
					}
					s.eventuallyGone(shell)
					r.Signal(sig)
					s.eventuallyFree(lock)
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
