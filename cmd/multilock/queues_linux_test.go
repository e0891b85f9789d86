package main_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/clitest"
)

// Queued processes are shown. Tickets of dead processes in a queue without live waiters are found by doctor,
// and removed by clean.
func TestQueuesAreSeenAndCleared(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	holder := s.start("run", "-n", "x", "--", "sh", "-c", "echo ready; read line")
	holder.Expect("ready")
	waiting := s.standInLine("a", "b")
	require.Regexp(t, fmt.Sprintf(`(?m)^queued for x: 2; first is \S+ pid %d by \S+: sh -c .*, for `, waiting[0].PID()), s.must("status"))
	require.Regexp(t, `(?m)^queued for x: 2; first is `, s.run("status", "x").stdout)
	require.NotContains(t, s.must("status", "y"), "in line")
	require.NotContains(t, s.run("doctor").stdout, "seem to be dead")

	waiting[1].Signal(syscall.SIGSTOP) // or it would soon remove the other's ticket
	s.eventually("the second waiter is stopped", func() bool { return stopped(waiting[1].PID()) })
	waiting[0].Signal(syscall.SIGKILL)
	waiting[0].wait()
	require.Regexp(t, fmt.Sprintf(`(?m)^queued for x: 1, 1 dead or without heartbeat; first is \S+ pid %d `, waiting[1].PID()), s.must("status"))
	waiting[1].Signal(syscall.SIGKILL)
	waiting[1].wait()
	got := s.run("doctor")
	require.Contains(t, clitest.OneLine(got.stdout), "2 waiters in the queue for lock x seem to be dead, such as ")
	require.Equal(t, 2, strings.Count(s.must("clean", "--dry-run"), "would remove the place of "))
	require.Len(t, s.line(), 2)
	require.Equal(t, 2, strings.Count(s.must("clean"), "removed the place of "))
	require.NoDirExists(t, filepath.Join(s.base, ".multilock", "groups", ".locks", "queue", "x"))
	require.NotContains(t, s.run("doctor").stdout, "seem to be dead")
	holder.end()
}

// A list that is longer than the screen is shown in pages, below its heading.
func TestWatchInPages(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	for i := range 45 {
		s.must("acquire", "-n", fmt.Sprintf("job%d", i+1), "--detach", "--ttl", "1h")
	}
	user, watch := onTerminalOf(t, 250, s.command("status", "--watch", "--every", "1h"))
	first := user.Screen.Take(t, "\x1b[J")
	require.Contains(t, first, "page 1 of 3")
	require.Contains(t, first, "NAME ")
	require.Contains(t, first, "\njob19 ")
	require.NotContains(t, first, "job20 ")
	user.Type(" ")
	second := user.Screen.Take(t, "\x1b[J")
	require.Contains(t, second, "page 2 of 3")
	require.Contains(t, second, "NAME ")
	require.Contains(t, second, "\njob20 ")
	user.Type("bb")
	user.Screen.Take(t, "\x1b[J")
	require.Contains(t, user.Screen.Take(t, "\x1b[J"), "page 3 of 3")
	user.Resize(60)
	user.Type("n")
	for line := range strings.Lines(user.Screen.Take(t, "\x1b[J")) {
		line = strings.NewReplacer("\x1b[H", "", "\x1b[K", "", "\x1b[1m", "", "\x1b[0m", "", "\r", "", "\n", "").Replace(line)
		require.LessOrEqual(t, len([]rune(line)), 60, "%q", line)
	}
	user.Type("q")
	require.Zero(t, watch.wait().code)
}
