package clitest

import (
	"io"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Terminal is the user's side of a terminal.
type Terminal struct {
	*os.File
	Screen *Output

	t testing.TB
}

// OpenTerminal returns both sides of a new terminal (pty(7)).
func OpenTerminal(t testing.TB) (*Terminal, *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = master.Close() })
	user, number := &Terminal{File: master, Screen: NewOutput(), t: t}, 0
	user.control(func(fd int) error { return unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0) })
	user.control(func(fd int) (err error) { number, err = unix.IoctlGetInt(fd, unix.TIOCGPTN); return err })
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = slave.Close() })
	go func() { _, _ = io.Copy(user.Screen, master) }() // until the other side is closed
	return user, slave
}

func (u *Terminal) control(call func(fd int) error) {
	u.t.Helper()
	conn, err := u.SyscallConn()
	require.NoError(u.t, err)
	var failed error
	require.NoError(u.t, conn.Control(func(fd uintptr) { failed = call(int(fd)) })) //nolint:gosec // a descriptor fits
	require.NoError(u.t, failed)
}

// Type is what the user does.
func (u *Terminal) Type(text string) {
	u.t.Helper()
	_, err := u.WriteString(text)
	require.NoError(u.t, err)
}

// Resize gives the terminal's window another width.
func (u *Terminal) Resize(columns uint16) {
	u.t.Helper()
	u.control(func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns})
	})
}

// Modes are how the terminal treats what is typed: echo, whole lines.
func (u *Terminal) Modes() (modes unix.Termios) {
	u.t.Helper()
	u.control(func(fd int) error {
		found, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err == nil {
			modes = *found
		}
		return err
	})
	return modes
}
