//go:build linux

package job_test

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const (
	ctrlC = "\x03"
	ctrlD = "\x04"
	ctrlZ = "\x1a"
)

// screen is the user's side of a terminal: what programs wrote to it and was not
// yet looked at.
type screen struct {
	t      *testing.T
	master *os.File

	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

// openPTY returns both sides of a new terminal (pty(7)).
func openPTY(t *testing.T) (*screen, *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { master.Close() })
	var number int
	require.NoError(t, control(master, func(fd int) error {
		if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
			return err
		}
		number, err = unix.IoctlGetInt(fd, unix.TIOCGPTN)
		return err
	}))
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { slave.Close() })
	s := &screen{t: t, master: master, changed: make(chan struct{}, 1)}
	go s.read()
	return s, slave
}

func control(f *os.File, call func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	if err := conn.Control(func(fd uintptr) { result = call(int(fd)) }); err != nil {
		return err
	}
	return result
}

func (s *screen) read() {
	var chunk [4096]byte
	for {
		n, err := s.master.Read(chunk[:])
		s.mu.Lock()
		s.text.Write(chunk[:n])
		s.mu.Unlock()
		select {
		case s.changed <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

func (s *screen) write(text string) {
	s.t.Helper()
	_, err := s.master.WriteString(text)
	require.NoError(s.t, err)
}

// expect waits for a text, and returns and forgets all up to it.
func (s *screen) expect(want string) string {
	s.t.Helper()
	deadline := time.After(watchdog)
	for {
		if before, found := s.take(want); found {
			return before
		}
		select {
		case <-s.changed:
		case <-deadline:
			s.mu.Lock()
			defer s.mu.Unlock()
			s.t.Fatalf("%q does not appear, but %q", want, s.text.String())
		}
	}
}

func (s *screen) take(want string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := strings.Index(s.text.String(), want)
	if at < 0 {
		return "", false
	}
	return string(s.text.Next(at + len(want))), true
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
