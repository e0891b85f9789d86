package world

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/multilock/go/cmd/multilock/clitest"
)

const (
	stageVariable = "MULTILOCK_WORLD_STAGE"
	dirVariable   = "MULTILOCK_WORLD_DIR"
	// programs is the directory of this checkout's binaries in the world.
	programs = "/usr/local/bin"
	// marker is a file that exists only in a world.
	marker = "/run/multilock-world"
)

// Main runs the tests in a world with these packages, and returns the exit code. multilock and
// multilock-full, built from the checkout in the directory source, are in PATH.
func Main(m *testing.M, source string, packages ...string) int {
	code, err := stage(m, source, packages)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func stage(m *testing.M, source string, packages []string) (int, error) {
	switch os.Getenv(stageVariable) {
	case "":
		return outside(source, packages)
	case "enter":
		return enter()
	}
	// The tests change /etc and /usr freely: never run them on the machine itself.
	if _, err := os.Stat(marker); err != nil {
		return 1, fmt.Errorf("this is no world of its own: %w", err)
	}
	return m.Run(), nil
}

// outside prepares the world and starts it.
func outside(source string, packages []string) (code int, err error) {
	if _, err := exec.LookPath("apt-get"); err != nil || os.Geteuid() != 0 {
		fmt.Println("left out: it needs root and Debian's apt-get, to make a world of its own")
		return 0, nil
	}
	packed, err := layer(packages)
	if err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "multilock-world-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := build(source, dir); err != nil {
		return 1, err
	}
	binds, err := goDirs(source)
	if err != nil {
		return 1, err
	}
	work, err := os.Getwd()
	if err != nil {
		return 1, err
	}
	environ := append(os.Environ(), dirVariable+"="+dir, "MULTILOCK_WORLD_LAYER="+packed,
		"MULTILOCK_WORLD_BINDS="+strings.Join(binds, ":"), "MULTILOCK_WORLD_WORK="+work)
	cmd := self("enter", environ)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		Pdeathsig:  syscall.SIGKILL,
	}
	return run(cmd)
}

// build builds both binaries as scripts/build does.
func build(source, dir string) error {
	if err := clitest.Build(filepath.Join(source, "cmd/multilock"), filepath.Join(dir, "multilock"), clitest.Small); err != nil {
		return err
	}
	return clitest.Build(filepath.Join(source, "cmd/multilock"), filepath.Join(dir, "multilock-full"))
}

// goDirs returns the directories of this machine that the world needs, even if they are separate
// mounts.
func goDirs(source string) ([]string, error) {
	root, err := filepath.Abs(source)
	if err != nil {
		return nil, err
	}
	out, err := output("", "go", "env", "GOROOT", "GOMODCACHE", "GOCACHE")
	if err != nil {
		return nil, err
	}
	return append([]string{root}, strings.Fields(out)...), nil
}

func self(stage string, environ []string) *exec.Cmd {
	// The go command logs which files the tests read, but those are the world's: disable this log, and
	// with it the caching of results.
	args := slices.DeleteFunc(slices.Clone(os.Args[1:]), func(arg string) bool { return strings.HasPrefix(arg, "-test.testlogfile") })
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(environ, stageVariable+"="+stage)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd
}

func run(cmd *exec.Cmd) (int, error) {
	var ended *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &ended) {
		return 1, err
	}
	if cmd.ProcessState.ExitCode() < 0 {
		return 1, fmt.Errorf("the world of the tests: %v", cmd.ProcessState)
	}
	return cmd.ProcessState.ExitCode(), nil
}

// enter is the first process in the world. It makes the root directory, starts the tests, and reaps all
// orphans, as init does.
func enter() (int, error) {
	if err := makeRoot(os.Getenv(dirVariable)); err != nil {
		return 1, err
	}
	if err := os.Chdir(os.Getenv("MULTILOCK_WORLD_WORK")); err != nil {
		return 1, err
	}
	tests := self("test", append(os.Environ(), "MULTILOCK_TEST_BINARY="+programs+"/multilock"))
	if err := tests.Start(); err != nil {
		return 1, err
	}
	for { // the first process reaps every dead process, so os/exec cannot wait here
		var status syscall.WaitStatus
		dead, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 1, err
		case dead == tests.Process.Pid && status.Exited():
			return status.ExitStatus(), nil
		case dead == tests.Process.Pid:
			return 1, fmt.Errorf("the tests ended by signal %v", status.Signal())
		}
	}
}

// makeRoot mounts the world's root directory in dir and enters it.
func makeRoot(dir string) error {
	root, upper := filepath.Join(dir, "root"), filepath.Join(dir, "upper")
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts to ourselves: %w", err)
	}
	if err := fresh(upper, "755"); err != nil {
		return err
	}
	// The packages are copied, because overlayfs rejects a layer that lies below another one.
	const prepare = `mkdir "$0/work" "$1"; cp -a "$2" "$0/changes"; install -D -t "$0/changes$3" "$4/multilock" "$4/multilock-full"`
	if _, err := output("", "bash", "-e", "-c", prepare, upper, root, os.Getenv("MULTILOCK_WORLD_LAYER"), programs, dir); err != nil {
		return err
	}
	if err := mount("overlay", root, "overlay", 0, "lowerdir=/,upperdir="+upper+"/changes,workdir="+upper+"/work"); err != nil {
		return err
	}
	if err := fill(root); err != nil {
		return err
	}
	if err := unix.Chroot(root); err != nil {
		return err
	}
	if err := os.WriteFile(marker, nil, 0o444); err != nil { //nolint:gosec // it is empty
		return err
	}
	if err := unix.Sethostname([]byte("desk")); err != nil {
		return err
	}
	_, err := output("/", "ip", "link", "set", "lo", "up")
	return err
}

// fill mounts what belongs below the root directory.
func fill(root string) error {
	for path, mode := range map[string]string{"/tmp": "1777", "/run": "755", "/shared": "755"} {
		if err := fresh(root+path, mode); err != nil {
			return err
		}
	}
	if err := mount("proc", root+"/proc", "proc", 0, ""); err != nil {
		return err
	}
	for _, path := range append([]string{"/dev", "/sys"}, strings.Split(os.Getenv("MULTILOCK_WORLD_BINDS"), ":")...) {
		if err := mount(path, root+path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return err
		}
	}
	return nil
}

// fresh mounts an empty directory.
func fresh(path, mode string) error { return mount("world", path, "tmpfs", 0, "mode="+mode) }

func mount(from, to, kind string, flags uintptr, options string) error {
	if err := os.MkdirAll(to, 0o755); err != nil { //nolint:gosec // a root is readable
		return err
	}
	if err := unix.Mount(from, to, kind, flags, options); err != nil {
		return fmt.Errorf("mount %s: %w", to, err)
	}
	return nil
}
