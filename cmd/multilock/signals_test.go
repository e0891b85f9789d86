//go:build unix

package main_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSignalsAreForwarded(t *testing.T) {
	t.Parallel()
	for name, sig := range map[string]syscall.Signal{
		"TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "QUIT": syscall.SIGQUIT,
		"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStation(t)
			job := s.start("run", "-n", "x", "--", "sh", "-c", `trap "echo got it; kill -9 \$! 2>/dev/null; exit 7" `+name+`; sleep 1000 & echo ready; wait`)
			job.Expect("ready")
			job.Signal(sig)
			require.Equal(t, ended{7, "ready\ngot it\n", ""}, job.wait())
			require.Equal(t, "free", s.lock("x").State)
		})
	}
}

func TestSignalThatTheJobDiesOf(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	job := s.hold("x")
	job.Signal(syscall.SIGTERM)
	require.Equal(t, ended{143, "ready\n", ""}, job.wait())
	events := s.history("x")
	require.Equal(t, []string{"acquired", "released"}, happened(events))
	require.Equal(t, 143, *events[1].Exit)
	require.Equal(t, "terminated", events[1].Signal)
}

// If a job dies of SIGINT, the runner dies of it, too, as a shell expects.
func TestInterruptIsPassedUp(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	job := s.hold("x")
	job.Signal(os.Interrupt)
	job.wait()
	require.True(t, diedOf(job, syscall.SIGINT), job.Cmd.ProcessState)
	require.Equal(t, "free", s.lock("x").State)
}

func diedOf(r *running, sig syscall.Signal) bool {
	status, ok := r.Cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == sig
}

func TestSignalsWhileWaitingLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	for name, sig := range map[string]syscall.Signal{"TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "INT": syscall.SIGINT} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStation(t)
			holder := s.hold("x")
			waiter := s.start("run", "-n", "x", "--wait", "forever", "--", "echo", "not to be seen")
			waiter.ExpectNotice()
			waiter.Signal(sig)
			got := waiter.wait()
			if sig == syscall.SIGINT {
				require.True(t, diedOf(waiter, sig), "a shell's loop would go on")
			} else {
				require.Equal(t, 128+int(sig), got.code)
			}
			require.Empty(t, got.stdout)
			require.Contains(t, got.stderr, "stopped by signal")
			require.Zero(t, s.staged())
			require.Zero(t, holder.end().code)
			require.Equal(t, "free", s.lock("x").State)
		})
	}
}

// A broken ssh connection closes the reader of our messages.
func TestRunOutlivesTheReaderOfItsMessages(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, reader.Close())
	cmd := s.command("run", "-v", "-n", "x", "--", "sh", "-c", `sh -c "kill -PIPE \$\$; echo ignored"; echo done`)
	cmd.Stderr = writer
	out, err := cmd.Output()
	require.NoError(t, err, "it was not ended by SIGPIPE")
	require.NoError(t, writer.Close())
	require.Equal(t, "done\n", string(out), "and its job can be")
	require.Equal(t, "free", s.lock("x").State)
}
