package procfs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// statLine builds a line like the kernel, with an unescaped name.
func statLine(pid int, name string, state byte, group int, start uint64) []byte {
	return fmt.Appendf(nil, "%d (%s) %c 1 %d 9248 0 -1 4194304 100 0 0 0 0 0 0 0 20 0 1 0 %d 3133440 383 18446744073709551615\n",
		pid, name, state, group, start)
}

func TestStatOfOurselves(t *testing.T) {
	own, err := Proc.Stat(0)
	require.NoError(t, err)
	require.False(t, own.Ended())
	comm, err := os.ReadFile("/proc/self/comm")
	require.NoError(t, err)
	require.Equal(t, strings.TrimSuffix(string(comm), "\n"), own.Name)
	require.NotZero(t, own.Start)
	require.NotZero(t, own.Threads)
	require.Equal(t, unix.Getpgrp(), own.Group)
	require.Equal(t, os.Getppid(), own.Parent)
	named, err := Proc.Stat(os.Getpid())
	require.NoError(t, err)
	require.Equal(t, os.Getpid(), named.PID)
	require.Equal(t, own.Start, named.Start)
}

func TestStatThatIsMalformed(t *testing.T) {
	whole := string(statLine(7, "sh", 'S', 7, 42))
	for _, line := range []string{
		"", "(", ")", ")(", "()", "7 (sh)", "7 (sh) ", "7 (sh) S", "7 sh S 1 7",
		whole[:strings.Index(whole, "42")], whole[:strings.Index(whole, " 42")], strings.Replace(whole, "(", "", 1), whole[5:] + "(", strings.Replace(whole, "42", "-42", 1),
		"7 (sh)  1 7", "7 (sh) SS 1 7", strings.Replace(whole, "S 1", " 1", 1), strings.Replace(whole, "S 1", "SS 1", 1),
		strings.Replace(whole, "S 1 7", "S 1 seven", 1), strings.Replace(whole, "42", "99999999999999999999", 1),
	} {
		_, err := parseStat([]byte(line))
		require.ErrorIs(t, err, errMalformed, "%q", line)
	}
	least, _, _ := strings.Cut(whole, " 3133440")
	_, err := parseStat([]byte(least))
	require.NoError(t, err, "nobody reads what follows")
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "7"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "7", "stat"), []byte("7 (sh)"), 0o600))
	_, err = Dir(dir).Stat(7)
	require.ErrorIs(t, err, errMalformed)
}

func TestStatOfNobody(t *testing.T) {
	_, err := Proc.Stat(-1)
	require.True(t, Vanished(err), "%v", err)
	require.True(t, Vanished(unix.ESRCH), "it ended after its file was opened")
	require.False(t, Vanished(unix.EACCES), "it is somebody else's, and hidden")
	require.False(t, Vanished(errMalformed))
}

// A process whose main thread has ended has not ended.
func TestWhoHasEnded(t *testing.T) {
	for _, state := range "RSDTtZXx" {
		for threads := range 3 {
			want := (state == 'Z' || state == 'X' || state == 'x') && threads < 2
			require.Equal(t, want, Stat{State: byte(state), Threads: threads}.Ended(), "%c, %d threads", state, threads)
		}
	}
}

func TestEntriesOfAnEnvironment(t *testing.T) {
	for environ, want := range map[string]bool{
		"": false, "A=1": true, "A=1\x00": true, "B=2\x00A=1\x00C=3": true, "A=12": false, "AA=1": false, "B=A=1": false,
	} {
		require.Equal(t, want, HasEntry([]byte(environ), "A=1"), "%q", environ)
	}
}

// FuzzStat checks that no name shifts a field, and that no line makes the parser panic.
func FuzzStat(f *testing.F) {
	for _, name := range []string{
		"sh", "", " ", ")", "(", ") (", "a) S 1 2 3", "x\n7 (y) Z 1 7", "kworker/0:1-events", "((sd-pam))", "\xff\xfe",
		string(statLine(7, "inner", 'Z', 8, 9)),
	} {
		f.Add([]byte(name), 4711, uint64(98566))
	}
	f.Add([]byte("reaped"), -1, uint64(0))
	f.Fuzz(func(t *testing.T, name []byte, group int, start uint64) {
		_, _ = parseStat(name)
		got, err := parseStat(statLine(4711, string(name), 'S', group, start))
		require.NoError(t, err)
		require.Equal(t, string(name), got.Name)
		require.Equal(t, byte('S'), got.State)
		require.Equal(t, group, got.Group)
		require.Equal(t, start, got.Start)
	})
}

func TestProcIsOurs(t *testing.T) {
	require.True(t, Proc.Ours())
}

// Before Linux 4.1 there was no NSpid.
func TestProcOfAnotherNamespace(t *testing.T) {
	dir := t.TempDir()
	require.False(t, Dir(dir).Ours())
	require.NoError(t, os.Symlink(strconv.Itoa(os.Getpid()), filepath.Join(dir, "self")))
	require.True(t, Dir(dir).Ours())
	own := filepath.Join(dir, strconv.Itoa(os.Getpid()))
	require.NoError(t, os.Mkdir(own, 0o700))
	for status, want := range map[string]bool{
		"NSpid:\t7\n": true, "Name:\tx\nNSpid:\t7\t1\n": false, "NoNSpid:\t7\t1\n": true, "NSpid:\n": false,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(own, "status"), []byte(status), 0o600))
		require.Equal(t, want, Dir(dir).Ours(), status)
	}
	require.NoError(t, os.WriteFile(filepath.Join(own, "status"), nil, 0o600))
	require.NoError(t, os.Remove(filepath.Join(dir, "self")))
	require.NoError(t, os.Symlink("1", filepath.Join(dir, "self")))
	require.False(t, Dir(dir).Ours())
}

func TestThreadsOfTheKernel(t *testing.T) {
	line := statLine(2, "kthreadd", 'S', 0, 42)
	found, err := parseStat(line)
	require.NoError(t, err)
	require.False(t, found.Kernel)
	flags := bytes.Replace(line, []byte(" 4194304 "), []byte(" 2129984 "), 1) // like kthreadd
	found, err = parseStat(flags)
	require.NoError(t, err)
	require.True(t, found.Kernel)
	found, err = parseStat(bytes.Replace(line, []byte(" 4194304 "), []byte(" 4194305 "), 1))
	require.NoError(t, err)
	require.False(t, found.Kernel, "it runs a virtual processor, and is nobody's but its user's")
	_, err = parseStat(bytes.Replace(line, []byte(" 4194304 "), []byte(" many "), 1))
	require.ErrorIs(t, err, errMalformed)
}

func TestSmallFilesOfAnySize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, size := range []int{0, 1, usuallySmall - 1, usuallySmall, usuallySmall + 1, 2 * usuallySmall, 5*usuallySmall + 7} {
		content := bytes.Repeat([]byte("0123456789"), size/10+1)[:size]
		require.NoError(t, os.WriteFile(path, content, 0o666))
		got, err := Read(path)
		require.NoError(t, err)
		require.Equal(t, string(content), string(got))
	}
}

func TestSmallFileThatCannotBeRead(t *testing.T) {
	_, err := Read(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, unix.ENOENT)
	_, err = Read(t.TempDir())
	require.ErrorIs(t, err, unix.EISDIR)
	_, err = Dir("/none").PIDs()
	require.ErrorIs(t, err, unix.ENOENT)
	_, err = Dir("/proc/self/stat").PIDs()
	require.ErrorIs(t, err, unix.ENOTDIR)
}

func TestProcessesAreTheNumbers(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"7", "self", "123", "sys", "7x"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	pids, err := Dir(dir).PIDs()
	require.NoError(t, err)
	require.ElementsMatch(t, []int{7, 123}, pids)
}

// No file stays open after reading, or is inherited by a job that starts at the same time.
func TestFilesOfTheKernelAreClosed(t *testing.T) {
	before := descriptors(t)
	for range 100 {
		_, err := Read("/proc/self/status")
		require.NoError(t, err)
		_, err = Proc.PIDs()
		require.NoError(t, err)
	}
	require.Less(t, descriptors(t), before+50)

	fd, err := openFile("/proc/self/stat")
	require.NoError(t, err)
	defer unix.Close(fd)
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	require.NoError(t, err)
	require.NotZero(t, flags&unix.FD_CLOEXEC)
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}
