package locktest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// Script is a process that plays another program with which locks are shared. It reads lines, and answers
// each with one line. It ends with the test at the latest.
//
// A missing answer fails the test, and is read as "", so that goroutines of a test can use a Script as
// well.
type Script struct {
	t      testing.TB
	cmd    *exec.Cmd
	input  io.Writer
	output *bufio.Scanner
	errors bytes.Buffer // only read it after the process has ended
}

// StartScript starts the process. The process's standard error is shown if an answer is missing.
func StartScript(t testing.TB, cmd *exec.Cmd) *Script {
	t.Helper()
	s := &Script{t: t, cmd: cmd}
	cmd.Stderr = &s.errors
	var err error
	s.input, err = cmd.StdinPipe()
	require.NoError(t, err)
	output, err := cmd.StdoutPipe()
	require.NoError(t, err)
	s.output = bufio.NewScanner(output)
	require.NoError(t, cmd.Start())
	t.Cleanup(s.Kill)
	return s
}

// Python is the path of a Python 3. Without one the test is skipped.
func Python(t testing.TB) string {
	t.Helper()
	for _, candidate := range []string{"/usr/bin/python3", "python3"} {
		if path, err := exec.LookPath(candidate); err == nil {
			return path
		}
	}
	t.Skip("there is no python3 on this machine, to play the other program")
	return ""
}

// Do sends a line to the script and returns its answer.
func (s *Script) Do(line string) string {
	s.t.Helper()
	s.Tell(line)
	return s.Hear()
}

// Tell sends a line without waiting for the answer.
func (s *Script) Tell(line string) {
	s.t.Helper()
	if _, err := fmt.Fprintln(s.input, line); err != nil {
		s.t.Errorf("tell %v: %v", s.cmd.Args, err)
	}
}

// Hear waits for an answer.
func (s *Script) Hear() string {
	s.t.Helper()
	if !s.output.Scan() {
		s.Kill()
		s.t.Errorf("%v ended without an answer: %s", s.cmd.Args, &s.errors)
	}
	return s.output.Text()
}

// PID is the process's number.
func (s *Script) PID() int { return s.cmd.Process.Pid }

// Kill ends the process as a crash does; a second call does nothing.
func (s *Script) Kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}
