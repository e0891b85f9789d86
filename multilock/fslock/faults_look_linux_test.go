package fslock_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

// A directory that is being watched, and that somebody has emptied, is no lock any more.
func TestLookAtALockWhoseFileIsGone(t *testing.T) {
	base, _, src := contested(t, scene{})
	contendAndTry(t, src, sweptName, longClaim())
	o := observe(t, src, sweptName, source.Patience{})
	require.Equal(t, source.StateHeld, look(t, o).State)
	require.NoError(t, os.Remove(lockedPath(base)))
	require.Equal(t, source.StateFree, look(t, o).State)
	again := contendAndTry(t, src, sweptName, longClaim())
	seen := look(t, o)
	require.Equal(t, source.StateHeld, seen.State)
	require.Equal(t, again.Record().Token, seen.Record.Token)
}

// A directory that cannot be listed is not taken for an empty one.
func TestLookAtALimboThatCannotBeListed(t *testing.T) {
	base, faulty, src := contested(t, scene{})
	emptyDirectory(t, base, sweptName)
	require.NoError(t, os.WriteFile(filepath.Join(lockPath(base), ".nfs0001"), nil, 0o666))
	faulty.Inject(denyingAt("list", sweptName, syscall.EIO, 1))
	o := observe(t, src, sweptName, source.Patience{})
	_, err := o.Look(t.Context())
	require.ErrorIs(t, err, syscall.EIO)
	require.True(t, look(t, o).Limbo)
}

// What is seen first tells how long the holder has been silent.
func TestLookTellsTheSilence(t *testing.T) {
	base, _, src := contested(t, scene{})
	contendAndTry(t, src, sweptName, longClaim())
	ageLock(t, base, time.Minute)
	seen := look(t, observe(t, src, sweptName, source.Patience{}))
	require.GreaterOrEqual(t, seen.Silence, time.Minute-time.Second)
}

// The directory of the numbers may be tidied away while it is open: it is made again, and
// the numbers begin anew. Any other answer is passed on.
func TestFenceWhoseDirectoryIsGone(t *testing.T) {
	base, faulty, src := contested(t, scene{})
	lease := contendAndTry(t, src, sweptName, longClaim())
	for _, part := range []string{"groups", filepath.Join("groups", fslock.DefaultGroup, "fence")} {
		fence(t, lease)
		require.NoError(t, os.RemoveAll(filepath.Join(base, ".multilock", part)))
		require.EqualValues(t, 1, fence(t, lease))
	}
	faulty.Inject(denyingAt("opendurable", "fence/"+sweptName, syscall.EIO, 1))
	_, err := lease.Fence(t.Context())
	require.ErrorIs(t, err, syscall.EIO, "it was not tried again")
	fence(t, lease)
}

// The directory in which the clock is read may be removed under who has it open: one
// reading fails, the next one makes it again.
func TestClockWhoseDirectoryIsGone(t *testing.T) {
	base, _, src := contested(t, scene{})
	require.NoError(t, os.RemoveAll(filepath.Join(base, ".multilock", "staging")))
	_, err := src.Now(t.Context())
	require.ErrorIs(t, err, syscall.ENOENT)
	_, err = src.Now(t.Context())
	require.NoError(t, err)
}
