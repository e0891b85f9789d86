package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/cmd/multilock/clitest"
)

// fullPipe is the end of a pipe that is full, and that nobody reads.
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

// startUnread starts the binary with messages that nobody reads.
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

// Nobody reads our messages (a full pipe): the job is ended all the same, the lock is
// given back, and the program ends.
func TestRunWhoseMessagesNobodyReads(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		options []string
		meet    func(s *station, r *running)
		code    int
	}{
		"over its limit": {[]string{"--max-runtime", "200ms", "--grace", "50ms"}, func(*station, *running) {}, 124},
		"lost":           {[]string{"--ttl", "1s"}, func(s *station, _ *running) { s.breakUnder("x") }, 122},
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
			s.breakUnder("a")
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
			r := s.startUnread("batch", "-j2", "--ttl", "1s", "-v", s.list(lines...))
			s.eventuallyThere(dir, "a", "b")
			one.meet(s, r, dir)
			require.Equal(t, one.code, r.wait().code)
			s.eventuallyFree("a")
			s.eventuallyFree("b")
		})
	}
}
