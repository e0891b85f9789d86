//go:build unix

package console

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// Keys returns the keys that the user types, one at a time and without echo, until restore is called.
// It returns nil without a terminal, or in the background, where a change of the terminal would stop
// this process. Ctrl-C remains a signal.
func Keys(terminal *os.File) (keys <-chan byte, restore func()) {
	fd := int(terminal.Fd()) //nolint:gosec // a descriptor fits
	before, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil, func() {}
	}
	set := func(to *unix.Termios) bool {
		foreground, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		return err == nil && foreground == unix.Getpgrp() && unix.IoctlSetTermios(fd, setTermios, to) == nil
	}
	now := *before
	now.Lflag &^= unix.ICANON | unix.ECHO
	now.Cc[unix.VMIN], now.Cc[unix.VTIME] = 1, 0
	if !set(&now) {
		return nil, func() {}
	}
	release := aroundStops(func() { set(before) }, func() { set(&now) })
	return readKeys(terminal), func() { release(); set(before) }
}

// aroundStops calls before when the user stops the process (Ctrl-Z), and after when it continues. Only
// SIGCONT shows that: other threads still run when kill returns.
func aroundStops(before, after func()) (release func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, unix.SIGCONT)
	if !signal.Ignored(unix.SIGTSTP) {
		signal.Notify(signals, unix.SIGTSTP)
	}
	go func() {
		for sig := range signals {
			if sig == unix.SIGCONT {
				after()
				continue
			}
			before()
			_ = unix.Kill(unix.Getpid(), unix.SIGSTOP)
		}
	}()
	return func() { signal.Stop(signals); close(signals) }
}
