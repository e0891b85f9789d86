package fslock_test

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

func examined(t *testing.T, opt fslock.Options) map[string]source.Finding {
	t.Helper()
	src, err := fslock.Open(opt)
	require.NoError(t, err)
	defer src.Close()
	found := map[string]source.Finding{}
	for _, f := range src.Examine(t.Context()) {
		found[f.Subject+" "+string(f.Severity)] = f
	}
	return found
}

// A directory that was reached through another mount namespace is on a mount that
// is not in our table.
func TestExamineAMountThatCannotBeSeen(t *testing.T) {
	found := examined(t, fslock.Options{Base: tiny(t, 100)})
	require.Contains(t, found["mount fine"].Text, "its mount is in no place that this process can see")
	require.Contains(t, found, "rules fine")
}

func TestExamineOurOwnMount(t *testing.T) {
	t.Parallel()
	found := examined(t, fslock.Options{Base: "/dev/shm"})
	require.Contains(t, found["mount fine"].Text, "/dev/shm, type tmpfs")
	require.Contains(t, found["mount warning"].Text, "no other host sees this filesystem (tmpfs)")
	require.Contains(t, found, "rules fine")
	require.Contains(t, found, "clock fine")
}

// The test is made anew: a marker of an earlier one may be of another time.
func TestExamineFindsAFileSystemThatReplaces(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	faulty := sharedFS()
	require.Contains(t, examined(t, fslock.Options{Base: base, FS: faulty}), "rules fine")
	src, err := fslock.Open(fslock.Options{Base: base, FS: faulty})
	require.NoError(t, err)
	lock, err := multilock.TryAcquire(t.Context(), src, "x", multilock.Options{}) // this leaves a marker
	require.NoError(t, err)
	require.NoError(t, errors.Join(lock.Release(t.Context()), src.Close()))

	faulty.Inject(breaking("rmdir", func(op faultfs.Op) error { return errors.Join(os.RemoveAll(op.Real), faultfs.ErrPretend) }))
	found := examined(t, fslock.Options{Base: base, FS: faulty})
	require.Contains(t, found["rules unusable"].Text, "rmdir of a directory that is not empty")
}

// A clock that is wrong is no danger, and worth a warning.
func TestExamineAClockThatIsWrong(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
		faulty := sharedFS()
		faulty.Inject(func(op faultfs.Op) error {
			if op.Kind != "mkdir" || op.Phase != faultfs.After || !strings.HasSuffix(op.Path, ".clock") {
				return nil
			}
			moment := time.Now().Add(ahead)
			return os.Chtimes(op.Real, moment, moment)
		})
		f := examined(t, fslock.Options{Base: t.TempDir(), FS: faulty})["clock warning"]
		require.Contains(t, f.Text, map[bool]string{true: "ahead of", false: "behind"}[ahead > 0])
		require.Contains(t, f.Text, "clock is 1h0m0s ")
		require.NotEmpty(t, f.Advice)
	}
}

func TestExamineAReadOnlyDirectory(t *testing.T) {
	t.Parallel()
	found := examined(t, fslock.Options{Base: "/proc"})
	require.Contains(t, found, "rules unusable")
	require.NotEmpty(t, found["rules unusable"].Advice)
	require.Contains(t, found, "clock unusable")
	_, err := os.Stat("/proc/.multilock")
	require.ErrorIs(t, err, syscall.ENOENT)
}
