//go:build unix

package job

import (
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// terminal is the controlling terminal, through a descriptor of our own, because
// none of the job's descriptors need lead to it: `less <file` still reads keys.
type terminal struct {
	fd int
}

// openTerminal returns nil if we have no controlling terminal.
func openTerminal() *terminal {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return nil
	}
	return &terminal{fd: fd}
}

// ours reports whether our process group is in the foreground. It is false for
// no terminal and for one that has hung up.
func (t *terminal) ours() bool {
	if t == nil {
		return false
	}
	foreground, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	return err == nil && foreground == unix.Getpgrp()
}

// give puts a process group of our session into the foreground. From the
// background that takes a blocked SIGTTOU, or it stops us (tcsetpgrp(3)).
func (t *terminal) give(pgid int) error {
	return withoutTTOU(func() error {
		return unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, pgid)
	})
}

// modes returns the line settings, nil if they cannot be had.
func (t *terminal) modes() *term.State {
	state, err := term.GetState(t.fd)
	if err != nil {
		return nil
	}
	return state
}

func (t *terminal) restore(modes *term.State) error {
	return withoutTTOU(func() error { return term.Restore(t.fd, modes) })
}

func (t *terminal) close() error {
	return unix.Close(t.fd)
}
