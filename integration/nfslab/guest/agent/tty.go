//go:build linux

package agent

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// kernelOption returns the value of NAME=VALUE on the kernel's command line, or "".
func kernelOption(name string) (string, error) {
	line, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return "", err
	}
	for _, word := range strings.Fields(string(line)) {
		if value, found := strings.CutPrefix(word, name+"="); found {
			return value, nil
		}
	}
	return "", nil
}

// openRaw opens a terminal in raw mode.
func openRaw(path string, err error) (*os.File, error) {
	if err != nil {
		return nil, err
	}
	terminal, err := os.OpenFile(path, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	settings := unix.Termios{Cflag: unix.CS8 | unix.CREAD | unix.CLOCAL | unix.B38400}
	settings.Cc[unix.VMIN] = 1
	if err := unix.IoctlSetTermios(int(terminal.Fd()), unix.TCSETS, &settings); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return terminal, nil
}
