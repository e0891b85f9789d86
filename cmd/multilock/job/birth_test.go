//go:build linux

package job_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/internal/procfs"
)

const tracerArg = "__tracer"

// TestNoChildSharesTheRunnersSignals looks at each process that a runner starts, at the
// moment of its birth. Until it executes something it has the runner's memory: a
// signal that its handler took would be one sent to the runner. The stop key and those
// who are stopped along with a job reach it, for it is in the runner's group.
func TestNoChildSharesTheRunnersSignals(t *testing.T) {
	wait := filepath.Join(t.TempDir(), "go")
	cmd := exec.Command(os.Args[0], tracerArg, wait)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Equal(t, "born deaf\nborn deaf\n", string(out), "the job and the guard")
}

// traceRunner runs a runner until it has had two children, and says of each whether it
// was born with the runner's signals blocked.
func traceRunner(wait string) int {
	runtime.LockOSThread() // the tracer is a thread
	cmd := runner(shell(`while [ ! -e "$1" ]; do sleep 0.01; done`, wait)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		fmt.Println(err)
		return 1
	}
	pid := cmd.Process.Pid
	var status unix.WaitStatus
	_, _ = unix.Wait4(pid, &status, 0, nil) // it stops after its exec
	_ = unix.PtraceSetOptions(pid, unix.PTRACE_O_TRACECLONE|unix.PTRACE_O_TRACEVFORK)
	_ = unix.PtraceCont(pid, 0)
	for born := 0; ; {
		who, err := unix.Wait4(-1, &status, unix.WALL, nil)
		switch sig := status.StopSignal(); {
		case err != nil, who == pid && !status.Stopped():
			return status.ExitStatus()
		case !status.Stopped(): // a thread has ended
		case sig == unix.SIGSTOP && statusOf(who, "Tgid") == itoa(who):
			fmt.Println(birth(who))
			_ = unix.PtraceDetach(who)
			if born++; born == 2 {
				_ = os.WriteFile(wait, nil, 0o600)
			}
		case sig == unix.SIGSTOP, sig == unix.SIGTRAP: // of the tracing
			_ = unix.PtraceCont(who, 0)
		default:
			_ = unix.PtraceCont(who, int(sig))
		}
	}
}

func birth(pid int) string {
	blocked, _ := strconv.ParseUint(statusOf(pid, "SigBlk"), 16, 64)
	caught, _ := strconv.ParseUint(statusOf(pid, "SigCgt"), 16, 64)
	if caught&^blocked == 0 {
		return "born deaf"
	}
	return fmt.Sprintf("born with signals %x unblocked that the runner catches", caught&^blocked)
}

// statusOf is a line of proc_pid_status(5).
func statusOf(pid int, name string) string {
	status, _ := procfs.Proc.Read(pid, "status")
	_, rest, _ := strings.Cut(string(status), "\n"+name+":")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(line)
}
