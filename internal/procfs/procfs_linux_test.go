package procfs

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

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

// Nothing that is read stays open, or is open in a job that is started meanwhile.
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
