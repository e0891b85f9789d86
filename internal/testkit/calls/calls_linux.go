// Package calls counts the system calls of a child process, and skips tests that cannot count allocations.
// It is for tests only.
package calls

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// begin and end do not exist. A call of access(2) on each marks the part of a trace that counts.
const begin, end = "/multilock-count-begin", "/multilock-count-end"

// Counted calls do, and marks its system calls in the trace for Of.
func Counted(do func()) {
	_ = unix.Access(begin, unix.F_OK)
	do()
	_ = unix.Access(end, unix.F_OK)
}

// ours matches calls on a file or on the clock that we read. runtime matches those of the Go runtime, which
// reads files to learn how many processors it may use.
var (
	ours    = regexp.MustCompile(`^\d+ +(\w+)\(.*(["<]/|CLOCK_BOOTTIME)`)
	runtime = regexp.MustCompile(`["<](/sys/fs/cgroup|/sys/kernel/mm)|^\d+ +(mmap|munmap|execve)\(`)
)

// Of runs cmd to its end, and returns a line for each system call that it made on files and clocks between the
// marks. The test is skipped without strace.
func Of(t *testing.T, cmd *exec.Cmd) []string {
	t.Helper()
	lines := traced(t, cmd)
	from, to := slices.IndexFunc(lines, has(begin)), slices.IndexFunc(lines, has(end))
	require.GreaterOrEqual(t, from, 0, "no mark")
	require.Greater(t, to, from, "no mark at the end")
	return slices.DeleteFunc(lines[from+1:to], func(line string) bool { return !ours.MatchString(line) || runtime.MatchString(line) })
}

// On runs cmd to its end, and returns a line for each system call that it made on files in dir.
func On(t *testing.T, dir string, cmd *exec.Cmd) []string {
	t.Helper()
	inside := has("<" + dir)
	return slices.DeleteFunc(traced(t, cmd), func(line string) bool { return !inside(line) || !ours.MatchString(line) })
}

func has(text string) func(string) bool {
	return func(line string) bool { return strings.Contains(line, text) }
}

func traced(t *testing.T, cmd *exec.Cmd) (lines []string) {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("needs strace")
	}
	out := filepath.Join(t.TempDir(), "calls")
	cmd.Args = append([]string{strace, "-f", "-y", "-s", "0", "-o", out, "-e", "trace=%file,%desc,clock_gettime", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = strace
	output, err := cmd.CombinedOutput()
	if _, absent := os.Stat(out); absent != nil || strings.Contains(string(output), "PTRACE_TRACEME") {
		t.Skipf("strace cannot trace here: %s", output)
	}
	require.NoError(t, err, "%s", output)
	f, err := os.Open(out)
	require.NoError(t, err)
	defer f.Close()
	for scan := bufio.NewScanner(f); scan.Scan(); {
		lines = append(lines, scan.Text())
	}
	return lines
}

// Names shortens the lines to the calls' names, for a failure's message.
func Names(lines []string) (names []string) {
	for _, line := range lines {
		names = append(names, ours.FindStringSubmatch(line)[1])
	}
	return names
}

// NeedAllocs skips the test if this binary allocates more than a release does.
func NeedAllocs(t *testing.T) {
	t.Helper()
	if testing.CoverMode() != "" {
		t.Skip("coverage changes what is allocated")
	}
	info, _ := debug.ReadBuildInfo()
	if info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("the race detector changes what is allocated")
	}
}

// LocalDirs returns new directories on local filesystems, by type: tmpfs, and ext4 if the temporary directory is
// on it.
func LocalDirs(t *testing.T) map[string]string {
	t.Helper()
	dirs := map[string]string{}
	for _, parent := range []string{os.TempDir(), "/dev/shm"} {
		var s unix.Statfs_t
		if unix.Statfs(parent, &s) != nil {
			continue
		}
		name, ok := map[int64]string{unix.EXT4_SUPER_MAGIC: "ext4", unix.TMPFS_MAGIC: "tmpfs"}[int64(s.Type)] //nolint:unconvert // its width differs by platform
		if !ok || dirs[name] != "" {
			continue
		}
		dir, err := os.MkdirTemp(parent, "multilock-calls-")
		if err != nil {
			continue
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // as a shared directory is
		dirs[name] = dir
	}
	if len(dirs) == 0 {
		t.Skip("no local filesystem here")
	}
	return dirs
}
