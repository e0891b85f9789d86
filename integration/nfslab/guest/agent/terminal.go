//go:build linux

package agent

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// terminalPath is the virtio console, which the launcher connects to the user's terminal. The kernel's
// messages go to the serial console instead.
const terminalPath = "/dev/hvc0"

func (a *agent) runOnTerminal(cmd *exec.Cmd) int {
	terminal, err := os.OpenFile(terminalPath, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return a.exitCode(cmd, err)
	}
	defer terminal.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	return a.exitCode(cmd, cmd.Run())
}

// resize sets the size of the terminal. A wrong size is a nuisance, not an error.
func resize(size string) {
	var window unix.Winsize
	if _, err := fmt.Sscan(size, &window.Row, &window.Col); err != nil {
		return
	}
	terminal, err := os.OpenFile(terminalPath, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return
	}
	defer terminal.Close()
	_ = unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &window)
}
