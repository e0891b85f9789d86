package main_test

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/clitest"
)

const ctrlC = "\x03"

// onTerminal starts a command as the leader of a session that has the terminal,
// which does not know how wide it is.
func onTerminal(t *testing.T, cmd *exec.Cmd) (*clitest.Terminal, *running) {
	t.Helper()
	return onTerminalOf(t, 0, cmd)
}

// onTerminalOf does the same on a terminal of so many columns.
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

// Ctrl-C does to a command under multilock what it does to the command alone.
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

// interrupted types Ctrl-C and then two lines, and says how the command ended.
func interrupted(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	user, job := onTerminal(t, cmd)
	job.Expect("ready")
	user.Type(ctrlC + "\n\n")
	job.wait()
	return job.Cmd.ProcessState.String()
}

// A loop in a script ends with Ctrl-C, also while multilock waits.
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

// On a terminal the wait is told in one line that is replaced, and removed.
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
	watch.Expect("process ") // the holder's, or its job's once that is noted
	s.hold("y")
	watch.Expect("\ny  ")
	user.Type(ctrlC)
	watch.wait()
	require.True(t, diedOf(watch, syscall.SIGINT))
}

// What is waited for stands in one line, however narrow the terminal is or becomes, and
// however wide the characters are.
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
