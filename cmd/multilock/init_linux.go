package main

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/multilock/go/cmd/multilock/internal/console"
)

// asInit is for the first process of a container, which must reap all orphaned processes. It runs the program
// as its child, forwards signals, reaps, and ends like the child. It returns false in any other process, and
// if the child cannot be started.
func asInit(environ []string) (code int, yes bool) {
	if os.Getpid() != 1 {
		return 0, false
	}
	path, err := os.Executable()
	if err != nil {
		return 0, false
	}
	attr := &syscall.ProcAttr{Env: environ, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{}}
	if term.IsTerminal(0) { // the terminal sends its signals directly to the child
		attr.Sys.Setpgid, attr.Sys.Foreground, attr.Sys.Ctty = true, true, 0
	}
	signals := make(chan os.Signal, 64)
	signal.Notify(signals)
	child, err := syscall.ForkExec(path, os.Args, attr)
	if err != nil {
		signal.Reset()
		return 0, false
	}
	go func() {
		for sig := range signals {
			// The runtime uses SIGURG.
			if number, ok := sig.(syscall.Signal); ok && number != syscall.SIGCHLD && number != syscall.SIGURG {
				_ = syscall.Kill(child, number)
			}
		}
	}()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err != nil && err != syscall.EINTR:
			return 1, true
		case pid != child || !status.Exited() && !status.Signaled():
		case status.Signaled():
			return console.ExitSignal + int(status.Signal()), true
		default:
			return status.ExitStatus(), true
		}
	}
}
