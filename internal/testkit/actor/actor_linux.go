package actor

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// RunAs runs the process as another user, which need not have access to the binary.
func (a *Actor) RunAs(uid uint32) {
	a.Path = "/proc/self/exe"
	a.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
}

// Fate is how a process ended or stopped.
type Fate int32

// The fates have their numbers in waitid(2) (si_code in siginfo).
const (
	Exited  Fate = 1
	Killed  Fate = 2
	Stopped Fate = 5
)

// Await waits until the process has ended or stopped by itself, and returns which. It does not reap or
// continue the process.
func (a *Actor) Await(t testing.TB) (fate Fate) {
	t.Helper()
	a.within(func() {
		for {
			var info unix.Siginfo
			err := unix.Waitid(unix.P_PID, a.Process.Pid, &info, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT, nil)
			if err != unix.EINTR {
				require.NoError(t, err)
				fate = Fate(info.Code)
				return
			}
		}
	})
	return fate
}
