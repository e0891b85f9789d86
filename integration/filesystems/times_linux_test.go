package filesystems_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Checks the granularity of times in the table of docs/internals/filesystems.md.
func TestStepsOfTimes(t *testing.T) {
	v, mounts := mounted(t)
	base := place(t, mounts)[0]
	times := map[time.Time]bool{}
	for end := time.Now().Add(2100 * time.Millisecond); time.Now().Before(end); {
		path := filepath.Join(base, strconv.Itoa(len(times)))
		require.NoError(t, os.WriteFile(path, []byte("x"), 0o644))
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.NoError(t, os.Remove(path))
		times[info.ModTime()] = true
	}
	t.Logf("%d times in 2.1 s", len(times))
	require.Equal(t, v.seconds, len(times) <= 4, "whether times are whole seconds")
}

// Checks for which changes inotify(7) sends notifications: always for those through the same mount,
// so that a waiter on the same host is woken, and on some filesystems for those through the other
// mount.
func TestNotices(t *testing.T) {
	v, mounts := mounted(t)
	bases := place(t, mounts)
	if v.refused != "" {
		bases = bases[:1] // on cryfs the other mount does not even show the directory
	}
	for by, base := range bases {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
		require.NoError(t, err)
		_, err = unix.InotifyAddWatch(fd, bases[0], unix.IN_CREATE|unix.IN_MOVED_TO)
		require.NoError(t, err)
		require.Eventually(t, func() bool { // the other mount may show the directory late
			return os.Mkdir(filepath.Join(base, "by-"+strconv.Itoa(by)), 0o755) == nil
		}, 30*time.Second, 100*time.Millisecond)
		seen, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 2000)
		for errors.Is(err, unix.EINTR) { // the Go runtime's own signals interrupt poll(2)
			seen, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 2000)
		}
		require.NoError(t, err)
		require.NoError(t, unix.Close(fd))
		require.Equal(t, by == 0 && !v.deaf || v.notices, seen > 0, "notification of a directory created through mount %d", by)
	}
}
