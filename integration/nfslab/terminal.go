//go:build linux

package main

import (
	"fmt"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"github.com/multilock/go/integration/nfslab/wire"
)

// keepTerminal returns what puts the terminal back as it is now. The emulator does that itself unless it is killed.
func keepTerminal(used bool) (func(), error) {
	stdin := int(os.Stdin.Fd())
	if !used {
		return func() {}, nil
	}
	state, err := unix.IoctlGetTermios(stdin, unix.TCGETS)
	if err != nil {
		return nil, fmt.Errorf("standard input is no terminal: %w", err)
	}
	return func() { _ = unix.IoctlSetTermios(stdin, unix.TCSETS, state) }, nil
}

func (s *session) followTerminalSize() {
	changes := make(chan os.Signal, 1)
	signal.Notify(changes, unix.SIGWINCH)
	go func() {
		for s.sendTerminalSize() == nil {
			<-changes
		}
	}()
}

func (s *session) sendTerminalSize() error {
	size, err := unix.IoctlGetWinsize(int(os.Stdin.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return err
	}
	return s.sender.Send(wire.Resize, fmt.Appendf(nil, "%d %d", size.Row, size.Col))
}
