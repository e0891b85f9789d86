//go:build linux

package job_test

import (
	"bytes"
	"fmt"
	"io"
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

// runner returns a command that runs args as a job in a separate process.
func runner(args ...string) *exec.Cmd {
	return exec.Command(os.Args[0], append([]string{runnerArg}, args...)...)
}

// begin starts a runner that is killed at the end of the test, at the latest.
func begin(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
}

func TestKilledRunnerTakesTheWholeJobAlong(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	cmd := runner(shell(`
		export PIDS="$1"
		sleep 1000 & echo $! >>"$PIDS"
		sleep 1000 & echo $! >>"$PIDS"
		sh -c 'trap "" TERM HUP; echo $$ >>"$PIDS"; while :; do sleep 1000; done' &
		setsid sh -c 'echo $$ >>"$PIDS"; exec sleep 1000' &
		echo $$ >>"$PIDS"
		wait`, pids)...)
	// The pipe reaches EOF when no process holds it any more, including the guard.
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	begin(t, cmd)
	all := readPIDs(t, pids, 5)
	eventually(t, "the guard comes", func() bool { return hasGuard(cmd.Process.Pid) })
	require.NoError(t, cmd.Process.Kill())
	_, err = io.Copy(io.Discard, out)
	require.NoError(t, err)
	require.Error(t, cmd.Wait())
	for _, pid := range all {
		eventually(t, "it dies", func() bool { return dead(pid) })
	}
}

func TestDirectChildDiesWithTheRunnerAtOnce(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	cmd := runner(shell(`trap "" TERM HUP; echo $$ >"$1"; while :; do sleep 0.01; done`, pids)...)
	begin(t, cmd)
	pid := readPIDs(t, pids, 1)[0]
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	eventually(t, "it dies", func() bool { return dead(pid) })
}

// TestGuardHoldsNothing checks the descriptors of a guard whose runner inherited an open pipe.
func TestGuardHoldsNothing(t *testing.T) {
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	defer reader.Close()
	cmd := runner(shell(`exec sleep 1000 3>&-`)...)
	cmd.Dir = t.TempDir()
	cmd.ExtraFiles = []*os.File{writer}
	begin(t, cmd)
	require.NoError(t, writer.Close())
	eventually(t, "the guard comes", func() bool { return hasGuard(cmd.Process.Pid) })
	guard := guardOf(t, cmd.Process.Pid)
	pipe, err := os.Readlink("/proc/self/fd/" + lastPath(reader))
	require.NoError(t, err)
	eventually(t, "the guard closes what it was given", func() bool {
		return !strings.Contains(descriptors(guard), pipe)
	})
	require.Contains(t, descriptors(guard), "1 /dev/null\n2 /dev/null\n")
	environ, err := os.ReadFile("/proc/" + itoa(guard) + "/environ")
	require.NoError(t, err)
	require.Empty(t, environ)
	session, err := unix.Getsid(guard)
	require.NoError(t, err)
	require.Equal(t, guard, session)
	require.NoError(t, cmd.Process.Signal(unix.SIGTERM))
	require.Error(t, cmd.Wait())
	eventually(t, "the guard goes", func() bool { return dead(guard) })
}

func TestForwardedSignals(t *testing.T) {
	for _, sig := range []unix.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGWINCH} {
		pids := filepath.Join(t.TempDir(), "pids")
		script := `trap 'exit 42' HUP INT QUIT TERM USR1 USR2 WINCH; echo $$ >"$1"; while :; do sleep 0.01; done`
		cmd := runner(shell(script, pids)...)
		begin(t, cmd)
		readPIDs(t, pids, 1)
		require.NoError(t, cmd.Process.Signal(sig))
		require.Error(t, cmd.Wait())
		require.Equal(t, 42, cmd.ProcessState.ExitCode(), sig.String())
	}
}

func TestRunnerDiesOfInterruptAsItsJob(t *testing.T) {
	cmd := runner(shell("kill -INT $$")...)
	require.Error(t, cmd.Run())
	status := cmd.ProcessState.Sys().(interface{ Signal() unix.Signal })
	require.Equal(t, unix.SIGINT, status.Signal())
}

func TestIgnoredSignalsStayIgnored(t *testing.T) {
	for traps, want := range map[string][]unix.Signal{
		`trap "" HUP`:      {unix.SIGHUP},
		`trap "" INT QUIT`: {unix.SIGINT, unix.SIGQUIT},
		`trap "" TSTP`:     {unix.SIGTSTP},
		`trap "" TTIN`:     {unix.SIGTTIN},
	} {
		script := traps + `; exec "$0" "$@"`
		args := append([]string{"-c", script}, runner("grep", "SigIgn", "/proc/self/status").Args...)
		out, err := exec.Command("/bin/sh", args...).Output()
		require.NoError(t, err)
		var mask uint64
		for _, sig := range want {
			mask |= 1 << (sig - 1)
		}
		require.Equal(t, mask, parseMask(t, out), traps)
	}
}

func TestNohup(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	args := append([]string{}, runner(shell(`echo $$ >"$1"; while [ ! -e "$1.go" ]; do sleep 0.01; done; exit 5`, pids)...).Args...)
	cmd := exec.Command("nohup", args...)
	begin(t, cmd)
	readPIDs(t, pids, 1)
	require.NoError(t, cmd.Process.Signal(unix.SIGHUP))
	require.NoError(t, unix.Kill(children(cmd.Process.Pid)[0], unix.SIGHUP))
	require.NoError(t, os.WriteFile(pids+".go", nil, 0o600))
	require.Error(t, cmd.Wait())
	require.Equal(t, 5, cmd.ProcessState.ExitCode())
}

// TestPipelineEnds has a job that runs long enough to get a guard.
func TestPipelineEnds(t *testing.T) {
	script := `"$0" "$@" | cat`
	args := append([]string{"-c", script}, runner(shell("sleep 0.3; echo out")...).Args...)
	var out bytes.Buffer
	cmd := exec.Command("/bin/sh", args...)
	cmd.Stdout = &out
	require.NoError(t, cmd.Run())
	require.Equal(t, "out\n", out.String())
}

const tracerArg = "__tracer"

// TestNoChildSharesTheRunnersSignals checks each child of a runner at its start. Until its exec it shares
// the runner's memory: a signal that its handler caught would look like one sent to the runner. The stop
// key and signals to stopped peers of a job reach it, because it is in the runner's group.
func TestNoChildSharesTheRunnersSignals(t *testing.T) {
	wait := filepath.Join(t.TempDir(), "go")
	cmd := exec.Command(os.Args[0], tracerArg, wait)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Equal(t, "born deaf\nborn deaf\n", string(out), "the job and the guard")
}

// traceRunner traces a runner until it has had two children, and reports for each whether it started with the
// runner's signals blocked.
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

// statusOf returns a line of proc_pid_status(5).
func statusOf(pid int, name string) string {
	status, _ := procfs.Proc.Read(pid, "status")
	_, rest, _ := strings.Cut(string(status), "\n"+name+":")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(line)
}
