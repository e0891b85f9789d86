//go:build linux

package stalefs_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/multilock/go/integration/stalefs"
)

const (
	// insideVariable is set in a process with its own mount namespace.
	insideVariable = "MULTILOCK_STALEFS_INSIDE"
	// refusedVariable has the reason why a namespace could not be created.
	refusedVariable = "MULTILOCK_STALEFS_REFUSED"
)

// TestMain runs the tests in a mount namespace that ends with them, so that no mount is left
// behind, even after a panic.
func TestMain(m *testing.M) {
	if os.Getenv(insideVariable) != "" || unusable() != nil {
		os.Exit(m.Run())
	}
	code, err := runInside()
	if err != nil {
		os.Setenv(refusedVariable, err.Error())
		code = m.Run()
	}
	os.Exit(code)
}

// runInside runs this binary again in a new namespace. Most tests mostly wait, so more tests run in
// parallel than there are processors.
func runInside() (code int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	runtime.LockOSThread() // the namespace belongs to this thread, and the child inherits it
	if err := ownNamespace(); err != nil {
		return 0, err
	}
	cmd := exec.Command(self, append([]string{"-test.parallel=8"}, os.Args[1:]...)...)
	cmd.Env = append(os.Environ(), insideVariable+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	abortMounts(cmd.Process.Pid, ended)
	if cmd.ProcessState.Success() {
		return 0, nil
	}
	// After a signal or an early exit, nothing else reports the reason.
	fmt.Fprintln(os.Stderr, "the tests inside the namespace ended with", cmd.ProcessState)
	return max(cmd.ProcessState.ExitCode(), 1), nil // -1 means ended by a signal
}

func ownNamespace() error {
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		return err
	}
	return unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
}

// abortMounts waits for the end of the tests. If they end early, the kernel closes their open files
// and waits for a reply from the filesystem, which was in the same process: forever, unless the
// mount is aborted.
func abortMounts(pid int, ended <-chan struct{}) {
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-ended:
			return
		case <-look.C:
		}
		if !exiting(pid) {
			continue
		}
		for _, path := range mounts() {
			_ = unix.Unmount(path, unix.MNT_FORCE|unix.MNT_DETACH) // repeated if it fails
		}
	}
}

// exiting reports whether a process has begun to exit: it is a zombie, or its flags (field 9 of
// proc_pid_stat(5)) include PF_EXITING.
func exiting(pid int) bool {
	const flagExiting = 0x4
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // from field 3 on
	if err != nil || len(fields) < 7 {
		return false
	}
	flags, err := strconv.ParseUint(fields[6], 10, 64)
	return fields[0] == "Z" || (err == nil && flags&flagExiting != 0)
}

// mounts lists the mount points of this filesystem type that this thread sees.
func mounts() []string {
	text, err := os.ReadFile("/proc/thread-self/mounts")
	if err != nil {
		return nil
	}
	var paths []string
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[2] == stalefs.FileSystem {
			paths = append(paths, fields[1])
		}
	}
	return paths
}

// unusable returns the reason why nothing can be mounted here, if there is one.
func unusable() error {
	if refused := os.Getenv(refusedVariable); refused != "" {
		return errors.New("needs a mount namespace of its own: " + refused)
	}
	if os.Geteuid() != 0 {
		return errors.New("needs root, to mount FUSE file systems")
	}
	device, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("needs FUSE: %w", err)
	}
	return device.Close()
}
