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

// What the table in docs/internals/filesystems.md says of times: in steps of how long they are told.
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

// What inotify(7) tells: of what is done through the same mount always, so that who waits on
// one host is woken; and of what is done through the other.
func TestNotices(t *testing.T) {
	v, mounts := mounted(t)
	bases := place(t, mounts)
	if v.refused != "" {
		bases = bases[:1] // cryfs does not even show the other mount its place
	}
	for by, base := range bases {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
		require.NoError(t, err)
		_, err = unix.InotifyAddWatch(fd, bases[0], unix.IN_CREATE|unix.IN_MOVED_TO)
		require.NoError(t, err)
		require.Eventually(t, func() bool { // the other mount may be late to see the place
			return os.Mkdir(filepath.Join(base, "by-"+strconv.Itoa(by)), 0o755) == nil
		}, 30*time.Second, 100*time.Millisecond)
		seen, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 2000)
		for errors.Is(err, unix.EINTR) { // the runtime's own signals end a poll(2) too
			seen, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 2000)
		}
		require.NoError(t, err)
		require.NoError(t, unix.Close(fd))
		require.Equal(t, by == 0 && !v.deaf || v.notices, seen > 0, "of a directory made through mount %d", by)
	}
}
