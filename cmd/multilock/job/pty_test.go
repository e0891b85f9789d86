//go:build linux

package job_test

import (
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/cmd/multilock/clitest"
)

const (
	ctrlC = "\x03"
	ctrlD = "\x04"
	ctrlZ = "\x1a"
)

// screen is a terminal's, with what programs wrote to it and was not yet looked at.
type screen struct {
	t    *testing.T
	user *clitest.Terminal
}

func openPTY(t *testing.T) (*screen, *os.File) {
	t.Helper()
	user, slave := clitest.OpenTerminal(t)
	return &screen{t, user}, slave
}

func (s *screen) write(text string) { s.user.Type(text) }

// expect waits for a text, and returns and forgets all up to it.
func (s *screen) expect(want string) string {
	s.t.Helper()
	return s.user.Screen.Take(s.t, want)
}

// startBash starts an interactive shell with job control on a terminal of its
// own. $RUN is a runner there; <<PROMPT>> is the prompt.
func startBash(t *testing.T) *screen {
	t.Helper()
	s, slave := openPTY(t)
	cmd := exec.Command("bash", "--norc", "--noprofile", "--noediting", "-i")
	cmd.Env = append(os.Environ(), "HISTFILE=", "TERM=dumb", "RUN="+os.Args[0]+" "+runnerArg)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.Dir = t.TempDir()
	cmd.SysProcAttr = sessionLeader()
	require.NoError(t, cmd.Start())
	require.NoError(t, slave.Close())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	s.write("PS1='<<PROM''PT>>'; set -b\n")
	s.prompt()
	return s
}

// sessionLeader makes standard input the controlling terminal.
func sessionLeader() *unix.SysProcAttr {
	return &unix.SysProcAttr{Setsid: true, Setctty: true}
}

func (s *screen) prompt() string {
	s.t.Helper()
	return s.expect("<<PROMPT>>")
}

// run types a command. The quotes in """" keep what is expected later from
// being found in the echo of what was typed.
func (s *screen) run(line string) {
	s.t.Helper()
	s.write(line + "\n")
}

func (s *screen) requireCode(code int) {
	s.t.Helper()
	s.run(`echo co""de=$?.`)
	s.expect("code=" + strconv.Itoa(code) + ".")
	s.prompt()
}
