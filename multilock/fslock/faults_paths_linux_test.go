package fslock_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// byPath is a file system that finds open files by path, as libfuse does: a file that is removed while it
// is open gets another name until it is closed.
func byPath() *faultfs.FS {
	fs := faultfs.New(vfs.OS{}, nil)
	fs.Describe(vfs.FileSystem{Type: "test", ManyClocks: true})
	fs.Inject(func(op faultfs.Op) error {
		dir := filepath.Dir(op.Real)
		hidden := filepath.Join(dir, ".fuse_hidden0001")
		switch {
		case filepath.Base(dir) != "hiding":
		case op.Kind == "unlink" && op.Phase == faultfs.Before:
			return errors.Join(os.Rename(op.Real, hidden), faultfs.ErrPretend)
		case op.Kind == "file.close" && op.Phase == faultfs.After:
			return os.Remove(hidden)
		}
		return nil
	})
	return fs
}

// Access by path is safe for one host. A second host is rejected, and from then on the first, too, which
// cannot know whether the second was; until a user declares that the second is gone.
// Rule: none (docs/internals/filesystems.md)
func TestOneHostWherePathsFindWhatIsOpen(t *testing.T) {
	base := fresh(t)
	try := func(self process.Identity) error {
		src := open(t, fslock.Options{Base: base, FS: byPath(), Self: self})
		lock, err := multilock.TryAcquire(within(t), src, sweptName, multilock.Options{})
		if err == nil {
			giveBack(t, lock)
		}
		return err
	}
	here, there := process.Identity{}, elsewhere(t)
	require.NoError(t, try(here))
	require.NoError(t, try(here), "also by what its mark tells")
	own := markIn(t, base)
	for _, self := range []process.Identity{there, here, there} {
		err := try(self)
		require.ErrorIs(t, err, source.ErrInvalid)
		require.ErrorContains(t, err, "safe for one mount on one host only")
	}
	for _, mark := range namesIn(t, filepath.Join(base, ".multilock")) {
		if mark != own && mark != "staging" {
			require.NoError(t, os.Remove(filepath.Join(base, ".multilock", mark)))
		}
	}
	require.NoError(t, try(here))
}

// If two names are one file, two jobs would share a result, and one of them would never run.
// Rule: base
func TestNamesThatAreOneAreRefused(t *testing.T) {
	fs := faultfs.New(vfs.OS{}, func(op faultfs.Op) error {
		switch {
		case op.Kind != "statname" || filepath.Base(op.Real) != "FULL":
		case op.Phase == faultfs.Before:
			return os.Mkdir(op.Real, 0o755)
		default:
			return os.Remove(op.Real)
		}
		return nil
	})
	_, err := multilock.TryAcquire(within(t), open(t, fslock.Options{Base: fresh(t), FS: fs}), sweptName, multilock.Options{})
	require.ErrorIs(t, err, source.ErrInvalid)
	require.ErrorContains(t, err, "names that differ only in case are one name there")
	require.ErrorContains(t, err, "multilock help filesystems")
}

// Where hosts date what they write, a time hours in the past only makes a holder suspect: it is watched for
// its whole TTL.
// Rule: I5
func TestAgesProveNothingWhereHostsDateThem(t *testing.T) {
	for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			base := fresh(t)
			fs := faultfs.New(vfs.OS{}, nil)
			fs.Describe(vfs.FileSystem{Type: "test", ManyClocks: true})
			claim := minuteClaim()
			contendAndTry(t, open(t, fslock.Options{Base: base, FS: fs}), sweptName, claim)
			ageLock(t, base, ahead)
			o := observe(t, open(t, fslock.Options{Base: base, FS: fs, Self: elsewhere(t)}), sweptName, source.StalePolicy{})
			start := time.Now()
			lookUntil(t, o, source.StateDead, nil)
			require.GreaterOrEqual(t, time.Since(start), claim.TTL)
		})
	}
}
