package clitest

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Watchdog bounds what would otherwise hang. Nothing that passes comes near it.
const Watchdog = 2 * time.Minute

// Process is a command that was started. It lives no longer than the test.
type Process struct {
	Cmd      *exec.Cmd
	In       io.WriteCloser // nil if the command has an input of another kind
	Out, Err *Output

	t    testing.TB
	reap sync.Once
}

// Start starts a command with a pipe for its standard input.
func Start(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	return begin(t, cmd, in)
}

// Run runs a command to its end. Its input is what was prepared, or empty.
func Run(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	p := begin(t, cmd, nil)
	p.Wait()
	return p
}

func begin(t testing.TB, cmd *exec.Cmd, in io.WriteCloser) *Process {
	t.Helper()
	out, err := NewOutput(), NewOutput()
	cmd.Stdout, cmd.Stderr = out, err
	require.NoError(t, cmd.Start())
	return Adopt(t, cmd, in, out, err)
}

// Adopt takes over a command that was started with these ends of its input and output:
// nil for those that are not the test's.
func Adopt(t testing.TB, cmd *exec.Cmd, in io.WriteCloser, out, err *Output) *Process {
	t.Helper()
	p := &Process{Cmd: cmd, In: in, Out: out, Err: err, t: t}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		if in != nil {
			_ = in.Close()
		}
		p.reap.Do(func() { _ = cmd.Wait() })
	})
	return p
}

// WaitingJob is a job that says "ready" when it runs, and ends with its input.
func WaitingJob() []string { return []string{"sh", "-c", "echo ready; exec cat"} }

// Expect waits for a text on the standard output.
func (p *Process) Expect(text string) {
	p.t.Helper()
	p.Out.Expect(p.t, text)
}

// ExpectNotice returns when a command has told that it waits: it does nothing but
// waiting then, and no call of it is under way.
func (p *Process) ExpectNotice() {
	p.t.Helper()
	p.Err.Expect(p.t, "waiting for lock")
}

// Wait waits for the end, and kills the command if that does not come. It has ended
// only when nobody has its output open any more: that none of a job's processes is
// left is part of it.
func (p *Process) Wait() {
	p.t.Helper()
	p.reap.Do(func() {
		timer := time.AfterFunc(Watchdog, func() { _ = p.Cmd.Process.Kill() })
		err := p.Cmd.Wait()
		require.True(p.t, timer.Stop(), "%v did not end: %s", p.Cmd.Args, p.Err)
		require.NotErrorIs(p.t, err, exec.ErrWaitDelay, "somebody has the output of %v still open", p.Cmd.Args)
	})
}

// Kill ends the command as a crash does. What it started may live on.
func (p *Process) Kill() {
	p.t.Helper()
	p.Signal(os.Kill)
	p.reap.Do(func() { _ = p.Cmd.Wait() })
}

// Signal sends a signal.
func (p *Process) Signal(sig os.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.Cmd.Process.Signal(sig))
}

// PID is the process's number.
func (p *Process) PID() int { return p.Cmd.Process.Pid }

// Code is the exit code of a command that has ended.
func (p *Process) Code() int { return p.Cmd.ProcessState.ExitCode() }

// Output collects what a command writes, for looking at meanwhile.
type Output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

// NewOutput returns one that is empty.
func NewOutput() *Output { return &Output{changed: make(chan struct{}, 1)} }

// Write takes what the command wrote.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case o.changed <- struct{}{}:
	default:
	}
	return o.text.Write(p)
}

// String is all that was written so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Expect waits for a text.
func (o *Output) Expect(t testing.TB, text string) {
	t.Helper()
	deadline := time.After(Watchdog)
	for !strings.Contains(o.String(), text) {
		select {
		case <-o.changed:
		case <-deadline:
			t.Fatalf("%q does not appear, but %q", text, o.String())
		}
	}
}

// Take waits for a text, and returns and forgets all up to it.
func (o *Output) Take(t testing.TB, text string) string {
	t.Helper()
	o.Expect(t, text)
	o.mu.Lock()
	defer o.mu.Unlock()
	before, _, _ := strings.Cut(o.text.String(), text)
	o.text.Next(len(before) + len(text))
	return before
}

// OneLine is a text that was broken into lines, for a search in it.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
