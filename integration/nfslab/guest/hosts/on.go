//go:build linux

// Package hosts runs programs on the lab's hosts, that is in their namespaces.
//
// Its program "on" runs a command on a host. It is a program of its own, not nsenter, so that a test can
// treat it like the command: it forwards signals, returns the command's exit code, and when it is killed,
// the command is killed, too. "on" stays outside of the host's PID namespace, where its caller can see it.
// Its child Exec is inside and becomes the command.
package hosts

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

// hostsDir has a directory for each host, whose file pid contains the PID of the host's first process.
const hostsDir = "/run/lab/hosts"

// cgroups has a control group for each boot of a host, named after the host and the number of that boot.
const cgroups = "/sys/fs/cgroup"

// ExecProgram is the name of Exec's program on the PATH.
const ExecProgram = "lab-exec"

const usage = "usage: on HOST COMMAND [ARGUMENT...]"

// On runs the command line "on HOST COMMAND..." and returns the exit code: the command's own, 128+n if
// signal n ended it, 126 or 127 if the command cannot be run or found, 125 if there is no such host.
func On(args []string) int {
	if len(args) < 3 {
		fmt.Fprintln(os.Stderr, usage)
		return 125
	}
	// Namespaces belong to a thread, and so does the parent of the child's death signal.
	runtime.LockOSThread()
	host := filepath.Base(args[1])
	group, err := openGroup(host) // it is not visible from the host
	if err == nil {
		err = enter(host)
	}
	var clock *wallClock
	if err == nil {
		clock, err = catchClock(host)
	}
	if errors.Is(err, os.ErrNotExist) {
		err = errors.New("no such host, or it is down")
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "on %s: %v\n", args[1], err)
		return 125
	}
	if clock != nil {
		go clock.serve()
	}
	return run(args[2:], group)
}

// openGroup opens the control group of the host's current boot.
func openGroup(host string) (*os.File, error) {
	life, err := os.ReadFile(filepath.Join(hostsDir, host, "life"))
	if err != nil {
		return nil, err
	}
	return os.Open(filepath.Join(cgroups, host+"."+strings.TrimSpace(string(life))))
}

// enter moves the calling thread into the host's namespaces. A process that it starts is in the host's PID
// namespace.
func enter(host string) error {
	pid, err := os.ReadFile(filepath.Join(hostsDir, host, "pid"))
	if err != nil {
		return err
	}
	process, err := unix.Open("/proc/"+strings.TrimSpace(string(pid)), unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(process)
	for _, name := range []string{"net", "uts", "pid", "mnt"} {
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
	if name == "mnt" {
		return enterMounts(fd)
	}
	return unix.Setns(fd, 0)
}

func run(command []string, group *os.File) int {
	cmd := exec.Command(ExecProgram, command...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Fd())}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "on:", err)
		return 125
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s) // fails when the command has ended
		}
	}()
	_ = cmd.Wait() // ProcessState has the result
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}
