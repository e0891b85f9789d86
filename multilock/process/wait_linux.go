package process

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// await opens a descriptor of the process that has the number now, then judges: if that is still the right
// process, the descriptor stays that of the process.
func (id Identity) await(ctx context.Context, self Identity) error {
	handle, err := openHandle(id.PID)
	if err != nil {
		// Already gone, or a kernel or a sandbox without pidfd_open.
		return id.poll(ctx, self)
	}
	defer handle.Close()
	if gone, err := id.gone(self); gone || err != nil {
		return err
	}
	err = awaitEnd(ctx, handle)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return id.poll(ctx, self)
}

func openHandle(pid int) (*os.File, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("open pidfd of process %d: %w", pid, err)
	}
	// The runtime's poller needs non-blocking descriptors.
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("set pidfd of process %d non-blocking: %w", pid, err)
	}
	return os.NewFile(uintptr(fd), "pidfd"), nil
}

// awaitEnd parks the goroutine in the runtime's poller until the descriptor is
// readable, which is when the last thread of the process has ended.
func awaitEnd(ctx context.Context, handle *os.File) error {
	conn, err := handle.SyscallConn()
	if err != nil {
		return err
	}
	// A deadline in the past wakes the poller up.
	stop := context.AfterFunc(ctx, func() { _ = handle.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	return conn.Read(ended)
}

func ended(fd uintptr) bool {
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(poll, 0)
	return err == nil && n == 1
}
