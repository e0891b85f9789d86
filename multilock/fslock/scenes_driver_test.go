//go:build linux

package fslock_test

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// setting says as whom and where a puppet runs.
type setting struct {
	UID int // 0 for the user of the test
	// Container gives it a pid namespace of its own, and /proc to match.
	Container bool
	// PID is the number it is to have in its container, 0 for any.
	PID int
}

// marionette is the test's end of a puppet.
type marionette struct {
	*exec.Cmd
	input   io.WriteCloser
	orders  *json.Encoder
	answers *json.Decoder
}

// newPuppet starts a puppet that has opened the locks below base.
func newPuppet(t *testing.T, s setting, open order) *marionette {
	t.Helper()
	role := "puppet"
	if s.Container {
		role = "container"
	}
	p := prepareChild(t, role)
	if s.Container {
		p.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
		p.Env = append(p.Env, pidVariable+"="+strconv.Itoa(s.PID))
	}
	if s.UID != 0 {
		p.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(s.UID), Gid: uint32(s.UID)}}
	}
	p.start(t)
	open.Do = "open"
	p.must(t, open)
	return p
}

// prepareChild does not start it. The path is one that any user may execute.
func prepareChild(t *testing.T, role string) *marionette {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childVariable+"="+role)
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	require.NoError(t, err)
	output, err := cmd.StdoutPipe()
	require.NoError(t, err)
	return &marionette{Cmd: cmd, input: input, orders: json.NewEncoder(input), answers: json.NewDecoder(output)}
}

func (p *marionette) start(t *testing.T) {
	t.Helper()
	require.NoError(t, p.Start())
	t.Cleanup(p.end)
}

// end kills and reaps it; a second call does nothing.
func (p *marionette) end() {
	_ = p.Process.Kill()
	_ = p.Wait()
}

func (p *marionette) tell(t *testing.T, o order) {
	t.Helper()
	require.NoError(t, p.orders.Encode(o))
}

func (p *marionette) hear(t *testing.T) answer {
	t.Helper()
	var a answer
	require.NoError(t, p.answers.Decode(&a), "the child process ended without an answer")
	return a
}

func (p *marionette) do(t *testing.T, o order) answer {
	t.Helper()
	p.tell(t, o)
	return p.hear(t)
}

func (p *marionette) must(t *testing.T, o order) answer {
	t.Helper()
	a := p.do(t, o)
	require.Empty(t, a.Error)
	return a
}

func (p *marionette) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	require.NoError(t, p.Process.Signal(s))
}

func requireRoot(t testing.TB, why string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, for " + why)
	}
}
