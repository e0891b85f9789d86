package fslock_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/multilock/vfs/faultfs"
)

// sweepVariable tells the role "sweep" what to play: a stunt in JSON.
const sweepVariable = "MULTILOCK_TEST_SWEEP"

// stunt is a scene that a process of its own plays, and that strikes down that
// process at one operation.
type stunt struct {
	Base, Scene string
	How         string // "crash" or "stop"
	N           int
	Phase       faultfs.Phase
}

func (s stunt) injector() (faultfs.Injector, error) {
	switch s.How {
	case "crash":
		return faultfs.CrashAt(s.N, s.Phase), nil
	case "stop":
		return faultfs.StopAt(s.N, s.Phase), nil
	}
	return nil, fmt.Errorf("unknown way to strike %q", s.How)
}

// playSweep plays a stunt. If it comes through, it goes on with what it believes
// to hold, and writes all that it believed at any time to its output.
func playSweep() error {
	var st stunt
	if err := json.Unmarshal([]byte(os.Getenv(sweepVariable)), &st); err != nil {
		return err
	}
	s, err := sceneNamed(st.Scene)
	if err != nil {
		return err
	}
	inject, err := st.injector()
	if err != nil {
		return err
	}
	p, err := newPlayer(st.Base, s)
	if err != nil {
		return err
	}
	if err := s.prepare(p); err != nil {
		return err
	}
	p.faulty.Inject(inject)
	_ = s.play(p) // what comes of it is what the parent finds out
	p.faulty.Inject(nil)
	p.goOn()
	if err := json.NewEncoder(os.Stdout).Encode(account{p.beliefs, p.claim}); err != nil {
		return err
	}
	return p.end()
}

// goOn uses the lock as a holder would that noticed nothing.
func (p *player) goOn() {
	if p.lease == nil {
		return
	}
	_ = p.renew()
	_ = p.fence()
	_ = p.release()
}

// stuntman is the test's end of a process that plays a stunt.
type stuntman struct {
	*exec.Cmd
	output bytes.Buffer
}

func startStunt(t *testing.T, st stunt) *stuntman {
	t.Helper()
	told, err := json.Marshal(st)
	require.NoError(t, err)
	m := &stuntman{Cmd: exec.Command("/proc/self/exe")}
	m.Env = append(os.Environ(), childVariable+"=sweep", sweepVariable+"="+string(told))
	m.Stderr, m.Stdout = os.Stderr, &m.output
	m.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // its job is its own process group
	require.NoError(t, m.Start())
	dog := time.AfterFunc(watchdog, func() { _ = m.Process.Kill() })
	t.Cleanup(func() {
		dog.Stop()
		_, _ = m.Process.Kill(), m.Wait()
	})
	return m
}

// The reasons for which waitid(2) returns (siginfo's si_code).
const (
	childExited  = 1
	childKilled  = 2
	childStopped = 5
)

// await waits until the process has ended, or stopped, and says which. It stays a
// zombie, or stopped.
func (m *stuntman) await(t *testing.T) int32 {
	t.Helper()
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, m.Process.Pid, &info, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			require.NoError(t, err)
			return info.Code
		}
	}
}

// account is what a process tells of itself in the end.
type account struct {
	Beliefs []belief
	Claim   string // what it says to have done with the result
}

// goOn lets a stopped process go on, and returns its account when it has ended.
func (m *stuntman) goOn(t *testing.T) account {
	t.Helper()
	require.NoError(t, m.Process.Signal(syscall.SIGCONT))
	require.NoError(t, m.Wait())
	var told account
	require.NoError(t, json.Unmarshal(m.output.Bytes(), &told))
	return told
}
