package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/clitest"
)

const ctrlC = "\x03"

// onTerminal starts a command as the leader of a session with a terminal of unknown width.
func onTerminal(t *testing.T, cmd *exec.Cmd) (*clitest.Terminal, *running) {
	t.Helper()
	return onTerminalOf(t, 0, cmd)
}

// onTerminalOf does the same on a terminal with a number of columns.
func onTerminalOf(t *testing.T, columns uint16, cmd *exec.Cmd) (*clitest.Terminal, *running) {
	t.Helper()
	user, slave := clitest.OpenTerminal(t)
	user.Resize(columns)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	require.NoError(t, slave.Close())
	return user, &running{clitest.Adopt(t, cmd, user, user.Screen, user.Screen), t}
}

// Ctrl-C has the same effect on a command under multilock as on the command alone.
func TestCtrlC(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"dies of it":    `echo ready; exec sleep 1000`,
		"makes it 9":    `trap "exit 9" INT; echo ready; read x`,
		"goes on":       `trap "echo no" INT; echo ready; read x; read x; exit 4`,
		"does not care": `trap "" INT; echo ready; read x; exit 5`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStation(t)
			alone := s.command()
			alone.Path, alone.Args = "/bin/sh", []string{"sh", "-c", text}
			through := s.command("run", "-n", "x", "--", "sh", "-c", text)
			require.Equal(t, interrupted(t, alone), interrupted(t, through))
			require.Equal(t, "free", s.lock("x").State)
		})
	}
}

// interrupted types Ctrl-C and then two lines, and returns how the command ended.
func interrupted(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	user, job := onTerminal(t, cmd)
	job.Expect("ready")
	user.Type(ctrlC + "\n\n")
	job.wait()
	return job.Cmd.ProcessState.String()
}

// Ctrl-C ends a loop in a script, even while multilock waits.
func TestCtrlCEndsTheScriptAroundAWait(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.hold("x")
	script := s.command()
	script.Path, script.Args = "/bin/bash", []string{"bash", "-c", "for i in 1 2 3; do multilock run -n x --wait forever -- true; done; echo went on"}
	user, loop := onTerminal(t, script)
	loop.ExpectNotice()
	user.Type(ctrlC)
	got := loop.wait()
	require.True(t, diedOf(loop, syscall.SIGINT), loop.Cmd.ProcessState)
	require.NotContains(t, got.stdout, "went on")
	s.eventuallyNobodyWaits()
}

// On a terminal a wait is shown in one line, which is updated, and removed at the end.
func TestWaitOnATerminal(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	holder := s.hold("x")
	_, waiter := onTerminal(t, s.command("run", "-n", "x", "--wait", "forever", "--", "echo", "my turn"))
	waiter.Expect(fmt.Sprintf("\r\x1b[Kmultilock: waiting for lock %q", "x"))
	require.Zero(t, holder.end().code)
	waiter.Expect("\r\x1b[Kmy turn")
	require.Zero(t, waiter.wait().code)
}

func TestWatchOnATerminal(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.hold("x")
	user, watch := onTerminal(t, s.command("status", "--watch", "--every", "50ms"))
	watch.Expect("\x1b[H")
	watch.Expect("COMMAND")
	watch.Expect("process ") // the holder's, or its job's after that is recorded
	s.hold("y")
	watch.Expect("\ny  ")
	user.Type(ctrlC)
	watch.wait()
	require.True(t, diedOf(watch, syscall.SIGINT))
}

// What needs attention comes first, in color. Keys sort and filter, and no line is wider than the terminal.
func TestWatchIsAScreen(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.hold("living")
	s.hold("also")
	s.dead("gone")
	require.Equal(t, 3, s.run("run", "-n", "bad", "--once", "--", "sh", "-c", "exit 3").code)
	const end = "\x1b[J"
	user, watch := onTerminalOf(t, 60, s.command("status", "--watch", "--every", "1h"))
	first := user.Screen.Take(t, end)
	require.Regexp(t, `(?s)^\x1b\[H\x1b\[1m\d\d:\d\d:\d\d  2 held, 1 silent, 1 failed\x1b.*NAME .*\n\x1b\[31mgone .*\n\x1b\[31mbad .*\nalso .*\nliving .*q quit`, first)
	for line := range strings.Lines(first) {
		line = regexp.MustCompile(`\x1b\[[0-9]*[A-Za-z]|[\r\n]`).ReplaceAllString(line, "")
		require.LessOrEqual(t, len([]rune(line)), 60, "%q", line)
	}
	user.Type("f")
	only := user.Screen.Take(t, end)
	require.Contains(t, only, "gone ")
	require.Contains(t, only, "f show all")
	require.NotContains(t, only, "living ")
	user.Type("fs")
	user.Screen.Take(t, end)
	require.Contains(t, user.Screen.Take(t, end), "s sort (name)")
	user.Resize(100)
	require.Regexp(t, `(?m)^\x1b\[31mgone .* acquire for pid`, user.Screen.Take(t, end), "it adapts without a key")
	user.Type("q")
	require.Zero(t, watch.wait().code)

	plain := s.command("status", "--watch", "--every", "1h")
	plain.Env = append(plain.Env, "NO_COLOR=1")
	user, watch = onTerminalOf(t, 60, plain)
	first = user.Screen.Take(t, end)
	require.Contains(t, first, "gone ")
	require.NotRegexp(t, `\x1b\[\d+m`, first)
	user.Type("q")
	require.Zero(t, watch.wait().code)
}

// However the watch ends or stops, the terminal's state is restored.
func TestWatchRestoresTheTerminal(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	for name, end := range map[string]func(*clitest.Terminal, *running){
		"q":    func(user *clitest.Terminal, _ *running) { user.Type("q") },
		"INT":  func(user *clitest.Terminal, _ *running) { user.Type(ctrlC) },
		"TERM": func(_ *clitest.Terminal, watch *running) { watch.Signal(syscall.SIGTERM) },
		"HUP":  func(_ *clitest.Terminal, watch *running) { watch.Signal(syscall.SIGHUP) },
		"QUIT": func(_ *clitest.Terminal, watch *running) { watch.Signal(syscall.SIGQUIT) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fresh, _ := clitest.OpenTerminal(t)
			before := fresh.Modes()
			user, watch := onTerminal(t, s.command("status", "--watch", "--every", "1h"))
			watch.Expect("q quit")
			require.NotEqual(t, before, user.Modes())
			user.Type("\x1a") // Ctrl-Z
			require.Eventually(t, func() bool { return stopped(watch.PID()) }, watchdog, poll)
			require.Equal(t, before, user.Modes())
			watch.Signal(syscall.SIGCONT)
			require.Eventually(t, func() bool { return before != user.Modes() }, watchdog, poll)
			end(user, watch)
			watch.wait()
			require.Equal(t, before, user.Modes())
		})
	}
}

// stopped reports whether a process was stopped by a signal (proc(5)).
func stopped(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && regexp.MustCompile(`\) T `).Match(text)
}

// The notice fits on one line, on a terminal of any width, with characters of any width.
func TestNoticeFitsTheTerminal(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	holder := s.hold("夜間の仕事夜間の仕事夜間の仕事")
	user, waiter := onTerminalOf(t, 40, s.command("run", "-n", "夜間の仕事夜間の仕事夜間の仕事", "--wait", "forever", "--", "echo", "my turn"))
	const clear = "\r\x1b[K"
	user.Screen.Take(t, clear)
	user.Screen.Expect(t, "…")
	first, _, _ := strings.Cut(user.Screen.Take(t, "…"), "\n")
	require.Equal(t, `multilock: waiting for lock "夜間の仕`, first, "38 columns, and the mark")
	user.Resize(20)
	user.Screen.Take(t, clear)
	require.Equal(t, `multilock: waiting`, user.Screen.Take(t, "…"))
	require.Zero(t, holder.end().code)
	waiter.Expect(clear + "my turn")
	require.Zero(t, waiter.wait().code)
}
