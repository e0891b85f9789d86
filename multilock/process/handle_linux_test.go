package process

import (
	"context"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// cat runs until its input is closed.
func cat(t *testing.T) (*exec.Cmd, io.Closer) {
	t.Helper()
	cmd := exec.Command("cat")
	input, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	return cmd, input
}

func pidfd(t *testing.T, pid int) *os.File {
	t.Helper()
	handle, err := openHandle(pid)
	if err != nil {
		t.Skipf("no pidfd_open here: %v", err)
	}
	t.Cleanup(func() { handle.Close() })
	return handle
}

// The end must come from the poller: Wait would hide a handle that does not work
// behind its once-a-second look.
func TestHandleWakesUpAtTheEnd(t *testing.T) {
	cmd, input := cat(t)
	handle := pidfd(t, cmd.Process.Pid)
	result := make(chan error, 1)
	go func() { result <- awaitEnd(t.Context(), handle) }()
	require.NoError(t, input.Close())
	require.NoError(t, <-result)
}

func TestHandleWakesUpWithItsContext(t *testing.T) {
	cmd, _ := cat(t)
	handle := pidfd(t, cmd.Process.Pid)
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- awaitEnd(ctx, handle) }()
	cancel()
	require.ErrorIs(t, <-result, os.ErrDeadlineExceeded)
}

func TestPollIsTheSame(t *testing.T) {
	me, err := Self()
	require.NoError(t, err)
	cmd, input := cat(t)
	id, err := Find(cmd.Process.Pid)
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, id.poll(ctx, me), context.Canceled)

	result := make(chan error, 1)
	go func() { result <- id.poll(t.Context(), me) }()
	require.NoError(t, input.Close())
	require.NoError(t, <-result)

	id.Boot = ""
	require.ErrorContains(t, id.poll(t.Context(), me), "not known")
}

func TestHandleOfNobody(t *testing.T) {
	_, err := openHandle(1 << 30)
	require.Error(t, err)
	require.NotErrorIs(t, err, unix.EBADF)
}
