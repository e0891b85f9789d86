package main_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Who stands in line is shown. What the dead leave of that, nobody else being in line, is
// found by doctor and removed by clean.
func TestQueuesAreSeenAndCleared(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	holder := s.start("run", "-n", "x", "--", "sh", "-c", "echo ready; read line")
	holder.Expect("ready")
	waiting := s.standInLine("a", "b")
	require.Regexp(t, fmt.Sprintf(`(?m)^in line for x: 2; first is \S+ pid %d by \S+: sh -c .*, for `, waiting[0].PID()), s.must("status"))
	require.Regexp(t, `(?m)^in line for x: 2; first is `, s.run("status", "x").stdout)
	require.NotContains(t, s.must("status", "y"), "in line")
	require.NotContains(t, s.run("doctor").stdout, "in the line")

	waiting[0].Signal(syscall.SIGKILL)
	waiting[0].wait()
	require.Regexp(t, fmt.Sprintf(`(?m)^in line for x: 1, 1 dead or silent; first is \S+ pid %d `, waiting[1].PID()), s.must("status"))
	waiting[1].Signal(syscall.SIGKILL)
	waiting[1].wait()
	got := s.run("doctor")
	require.Contains(t, got.stdout, `queue: in the line for lock x are 2 places whose waiters seem to be dead`)
	require.Equal(t, 2, strings.Count(s.must("clean", "--dry-run"), "would remove the place of "))
	require.Len(t, s.line(), 2)
	require.Equal(t, 2, strings.Count(s.must("clean"), "removed the place of "))
	require.NoDirExists(t, filepath.Join(s.base, ".multilock", "groups", ".locks", "queue", "x"))
	require.NotContains(t, s.run("doctor").stdout, "in the line")
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
	require.Contains(t, first, "\njob20 ")
	require.NotContains(t, first, "job21 ")
	user.Type(" ")
	second := user.Screen.Take(t, "\x1b[J")
	require.Contains(t, second, "page 2 of 3")
	require.Contains(t, second, "NAME ")
	require.Contains(t, second, "\njob21 ")
	user.Type("bb")
	user.Screen.Take(t, "\x1b[J")
	require.Contains(t, user.Screen.Take(t, "\x1b[J"), "page 3 of 3")
	user.Resize(60)
	user.Type("n")
	for line := range strings.Lines(user.Screen.Take(t, "\x1b[J")) {
		line = strings.NewReplacer("\x1b[H", "", "\x1b[K", "", "\r", "", "\n", "").Replace(line)
		require.LessOrEqual(t, len([]rune(line)), 60, "%q", line)
	}
	user.Type("q")
	require.Zero(t, watch.wait().code)
}
