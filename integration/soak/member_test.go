//go:build linux

package soak_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/multilock/go/multilock/locktest"
)

// member is one worker process. Its parent is the lab's program "on", which stays
// outside of the host.
type member struct {
	proc  string
	on    *exec.Cmd
	stdin io.Closer
	out   io.Reader
	said  tail

	mu     sync.Mutex
	doomed bool
}

func startMember(host string, plan shift) (*member, error) {
	text, err := plan.describe()
	if err != nil {
		return nil, err
	}
	binary, err := os.Executable() // the hosts see the same one
	if err != nil {
		return nil, err
	}
	m := &member{proc: plan.Proc, on: exec.Command("on", host, binary)}
	m.on.Env = append(os.Environ(), shiftVariable+"="+text)
	m.on.Stderr = &m.said
	if m.stdin, err = m.on.StdinPipe(); err != nil {
		return nil, err
	}
	if m.out, err = m.on.StdoutPipe(); err != nil {
		return nil, err
	}
	return m, m.on.Start()
}

// listen passes on the events until the worker closes its output. A last line
// that a kill has torn is left out.
func (m *member) listen(add func(locktest.Event) error) error {
	lines := bufio.NewReader(m.out)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var e locktest.Event
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("%s wrote %q: %w", m.proc, line, err)
		}
		if err := add(e); err != nil {
			return err
		}
	}
}

func (m *member) wait() error { return m.on.Wait() }

// dismiss asks the worker to end.
func (m *member) dismiss() { _ = m.stdin.Close() }

func (m *member) condemn() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.doomed = true
}

func (m *member) condemned() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.doomed
}

// pid is the worker's number as seen from here: that of the only child of "on",
// which is a thread's child. There is none before it starts or after its end.
func (m *member) pid() (int, bool) {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", m.on.Process.Pid))
	if err != nil {
		return 0, false
	}
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue
		}
		if first, _, _ := strings.Cut(strings.TrimSpace(string(text)), " "); first != "" {
			pid, err := strconv.Atoi(first)
			return pid, err == nil
		}
	}
	return 0, false
}

// tail keeps the last that a worker said.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailSize = 8 << 10

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if len(t.text) > tailSize {
		t.text = append([]byte("..."), t.text[len(t.text)-tailSize:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}

// abort ends a worker that does not end by itself, and has it say where it stands.
func (m *member) abort() { _ = m.on.Process.Signal(unix.SIGQUIT) }
