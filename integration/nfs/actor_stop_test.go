package nfs_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/multilock/vfs/faultfs"
)

// stopBeforeRemoval stops this process with SIGSTOP the first time that it is about to
// take a file of that name out of its directory: a holder unlinks, a breaker moves it.
func stopBeforeRemoval(name string) faultfs.Injector {
	return stopOnce(func(op faultfs.Op) bool {
		return op.Phase == faultfs.Before && (op.Kind == "unlink" || op.Kind == "rename") && filepath.Base(op.Real) == name
	})
}

// stopOnce stops this process with SIGSTOP at the first such operation.
func stopOnce(at func(faultfs.Op) bool) faultfs.Injector {
	var once sync.Once
	return func(op faultfs.Op) error {
		if at(op) {
			once.Do(stopHere)
		}
		return nil
	}
}

// stopHere sends the signal to this very thread: sent to the process, another
// thread may take it, and this one would run on for a moment.
func stopHere() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Tgkill(os.Getpid(), unix.Gettid(), unix.SIGSTOP)
}

// awaitStop returns when the actor has stopped itself.
func (a *actor) awaitStop(t testing.TB) (goOn func()) {
	t.Helper()
	var pid int
	eventually(t, "the actor stops", func() bool {
		pid = a.stopped(t)
		return pid != 0
	})
	return func() { require.NoError(t, unix.Kill(pid, unix.SIGCONT)) }
}

// stopped is the actor's number on the server if it has stopped. All of a host's
// processes are in one control group.
func (a *actor) stopped(t testing.TB) int {
	t.Helper()
	life, err := a.host.state("life")
	require.NoError(t, err)
	group, err := os.ReadFile(filepath.Join("/sys/fs/cgroup", a.host.name+"."+life, "cgroup.procs"))
	require.NoError(t, err)
	for _, field := range strings.Fields(string(group)) {
		status, err := os.ReadFile(filepath.Join("/proc", field, "status"))
		if err != nil || !strings.Contains(string(status), "\nState:\tT") || !strings.Contains(string(status), "\t"+strconv.Itoa(a.pid)+"\n") {
			continue
		}
		pid, err := strconv.Atoi(field)
		require.NoError(t, err)
		return pid
	}
	return 0
}
