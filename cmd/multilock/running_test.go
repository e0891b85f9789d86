//go:build unix

package main_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/multilock/go/cmd/multilock/clitest"
)

// running is a command in the background.
type running struct {
	*clitest.Process
	t *testing.T
}

// ended is how a command ended.
type ended struct {
	code           int
	stdout, stderr string
}

// start starts the binary with a pipe for its standard input.
func (s *station) start(args ...string) *running {
	s.t.Helper()
	return begin(s.t, s.command(args...))
}

func begin(t *testing.T, cmd *exec.Cmd) *running {
	t.Helper()
	return &running{clitest.Start(t, cmd), t}
}

// hold starts a run whose job runs when hold returns.
func (s *station) hold(name string, options ...string) *running {
	s.t.Helper()
	args := slices.Concat([]string{"run", "-n", name}, options, []string{"--"}, clitest.WaitingJob())
	r := s.start(args...)
	r.Expect("ready")
	return r
}

// awaitNote waits until the lock names its job, which it does after a while only.
func (s *station) awaitNote(name string) {
	s.t.Helper()
	s.eventually("the lock names the job", func() bool { return strings.Contains(s.lock(name).Why, "its job lives") })
}

// end closes the standard input and waits for the end.
func (r *running) end() ended {
	r.t.Helper()
	_ = r.In.Close()
	return r.wait()
}

// wait waits for the end, also of all that the command's jobs have left.
func (r *running) wait() ended {
	r.t.Helper()
	r.Wait()
	return ended{r.Code(), r.Out.String(), r.Err.String()}
}
