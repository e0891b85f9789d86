//go:build linux

// Package on runs a command on one of the lab's hosts, that is in the host's namespaces.
//
// It is a program of its own, not nsenter, so that a test can treat it as the command: it passes on the signals it
// gets, returns the command's exit code, and takes the command with it when it is killed. Main stays outside of the host's pid
// namespace, where its caller can see it; its child Exec is inside and becomes the command.
package on

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// hostsDir holds one directory per host; the file pid in it names the host's first process.
const hostsDir = "/run/lab/hosts"

// ExecProgram is the name under which Exec is found on the PATH.
const ExecProgram = "lab-exec"

const usage = "usage: on HOST COMMAND [ARGUMENT...]"

// Main runs the command line "on HOST COMMAND..." and returns the exit code: the command's own, 128+n if signal n ended it,
// 126 or 127 if it cannot be run or found, 125 if there is no such host.
func Main(args []string) int {
	if len(args) < 3 {
		fmt.Fprintln(os.Stderr, usage)
		return 125
	}
	// Namespaces and the death signal belong to a thread.
	runtime.LockOSThread()
	if err := enter(args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "on %s: %v\n", args[1], err)
		return 125
	}
	return run(args[2:])
}

// enter moves the calling thread into the host's namespaces. A new process of it is in the host's pid namespace.
func enter(host string) error {
	pid, err := os.ReadFile(filepath.Join(hostsDir, filepath.Base(host), "pid"))
	if errors.Is(err, os.ErrNotExist) {
		return errors.New("no such host")
	}
	if err != nil {
		return err
	}
	process, err := unix.Open("/proc/"+strings.TrimSpace(string(pid)), unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("the host is down: %w", err)
	}
	defer unix.Close(process)
	// A thread that shares its root directory with others may not change the mount namespace.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("unshare root directory: %w", err)
	}
	for _, name := range []string{"net", "uts", "pid", "mnt"} { // mnt last: it hides /proc as seen from here
		if err := enterOne(process, name); err != nil {
			return fmt.Errorf("enter its %s namespace: %w", name, err)
		}
	}
	return nil
}

func enterOne(process int, name string) error {
	fd, err := unix.Openat(process, "ns/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Setns(fd, 0)
}

func run(command []string) int {
	cmd := exec.Command(ExecProgram, command...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "on:", err)
		return 125
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s) // fails when it has ended
		}
	}()
	_ = cmd.Wait() // its status says it all
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}
