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
	// insideVariable says that this process has a mount namespace of its own.
	insideVariable = "MULTILOCK_STALEFS_INSIDE"
	// refusedVariable says why it could not get one.
	refusedVariable = "MULTILOCK_STALEFS_REFUSED"
)

// TestMain runs the tests in a mount namespace that ends with them, so that they
// leave no mount behind, also after a panic.
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

// runInside runs this binary once more. Most tests wait most of the time, so more
// of them run side by side than there are processors.
func runInside() (code int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	runtime.LockOSThread() // this thread, and so the child, gets the namespace
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
	// Without this, nothing says why, if it was a signal or an exit in the middle.
	fmt.Fprintln(os.Stderr, "the tests inside the namespace ended with", cmd.ProcessState)
	return max(cmd.ProcessState.ExitCode(), 1), nil // -1 is the end by a signal
}

func ownNamespace() error {
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		return err
	}
	return unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
}

// abortMounts waits for the end of the tests. If they ended in the middle, the
// kernel closes the files that they had open, and waits for an answer from the
// file system that was in the same process: for ever, if nobody aborts that.
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
			_ = unix.Unmount(path, unix.MNT_FORCE|unix.MNT_DETACH) // whatever fails is tried again
		}
	}
}

// exiting says whether a process has begun to end: it is a zombie, or its flags
// (field 9 of proc_pid_stat(5)) have PF_EXITING.
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

// mounts are the paths of the file systems of this kind that this thread sees.
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

// unusable says why nothing can be mounted here.
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
