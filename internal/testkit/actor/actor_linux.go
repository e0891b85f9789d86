package actor

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// RunAs makes it the process of another user, who need not be able to reach the binary.
func (a *Actor) RunAs(uid uint32) {
	a.Path = "/proc/self/exe"
	a.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
}

// Fate is what became of a process.
type Fate int32

// The fates, by their numbers for waitid(2) (siginfo's si_code).
const (
	Exited  Fate = 1
	Killed  Fate = 2
	Stopped Fate = 5
)

// Await waits until the process has ended, or stopped, and says which. It stays a
// zombie, or stopped. Orders are not needed for that: it is for what an actor does by
// itself.
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
