//go:build unix

package console

import (
	"os"

	"golang.org/x/sys/unix"
)

// Keys are what the user types, each as it is typed and without being shown, until restore
// is called. They are nil if nobody can type, or we are in the background: to change the
// terminal there would stop us. Ctrl-C stays a signal.
func Keys(terminal *os.File) (keys <-chan byte, restore func()) {
	fd := int(terminal.Fd()) //nolint:gosec // a descriptor fits
	foreground, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	if err != nil || foreground != unix.Getpgrp() {
		return nil, func() {}
	}
	before, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil, func() {}
	}
	now := *before
	now.Lflag &^= unix.ICANON | unix.ECHO
	now.Cc[unix.VMIN], now.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, setTermios, &now); err != nil {
		return nil, func() {}
	}
	return readKeys(terminal), func() { _ = unix.IoctlSetTermios(fd, setTermios, before) }
}
