//go:build unix

package main_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// running is a command in the background. It lives no longer than the test.
type running struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *output
	err   *output
	once  sync.Once
}

// start starts the binary with a pipe for its standard input.
func (s *station) start(args ...string) *running {
	s.t.Helper()
	return begin(s.t, s.command(args...))
}

func begin(t *testing.T, cmd *exec.Cmd) *running {
	t.Helper()
	r := &running{t: t, cmd: cmd, out: newOutput(), err: newOutput()}
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	r.stdin, cmd.Stdout, cmd.Stderr = stdin, r.out, r.err
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = stdin.Close()
		r.once.Do(func() { _ = cmd.Wait() })
	})
	return r
}

// waitingJob is a command that says that it runs, and ends with its input.
var waitingJob = []string{"sh", "-c", "echo ready; exec cat"}

// hold starts a run whose job runs when hold returns.
func (s *station) hold(name string, options ...string) *running {
	s.t.Helper()
	args := slices.Concat([]string{"run", "-n", name}, options, []string{"--"}, waitingJob)
	r := s.start(args...)
	r.expect("ready")
	return r
}

// expect waits for a text on the standard output.
func (r *running) expect(text string) {
	r.t.Helper()
	r.out.expect(r.t, text)
}

// expectNotice returns when a command has told that it waits: it does nothing but
// waiting then, and no call of it is under way.
func (r *running) expectNotice() {
	r.t.Helper()
	r.err.expect(r.t, "waiting for lock")
}

// end closes the standard input and waits for the end.
func (r *running) end() ended {
	r.t.Helper()
	_ = r.stdin.Close()
	return r.wait()
}

func (r *running) wait() ended {
	r.t.Helper()
	r.once.Do(func() { guarded(r.t, r.cmd) })
	return ended{r.cmd.ProcessState.ExitCode(), r.out.String(), r.err.String()}
}

func (r *running) signal(sig os.Signal) {
	r.t.Helper()
	require.NoError(r.t, r.cmd.Process.Signal(sig))
}

func (r *running) pid() int { return r.cmd.Process.Pid }

// output collects what a command writes, for looking at meanwhile.
type output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

func newOutput() *output { return &output{changed: make(chan struct{}, 1)} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case o.changed <- struct{}{}:
	default:
	}
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func (o *output) expect(t *testing.T, text string) {
	t.Helper()
	deadline := time.After(watchdog)
	for !strings.Contains(o.String(), text) {
		select {
		case <-o.changed:
		case <-deadline:
			t.Fatalf("%q does not appear, but %q", text, o.String())
		}
	}
}
