package fslock_test

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

func manifestPath(base string) string {
	return filepath.Join(base, ".multilock", "groups", fslock.DefaultGroup, "manifest")
}

func TestManifest(t *testing.T) {
	src := open(t, fslock.Options{Base: t.TempDir()})
	for _, manifest := range []string{"one\n", "two\n"} {
		current, err := src.Publish(t.Context(), []byte(manifest))
		require.NoError(t, err)
		require.Equal(t, "one\n", string(current))
	}
	require.NoError(t, src.Retract(t.Context()))
	require.NoError(t, src.Retract(t.Context()))
	current, err := src.Publish(t.Context(), []byte("two\n"))
	require.NoError(t, err)
	require.Equal(t, "two\n", string(current))
	require.Empty(t, namesIn(t, filepath.Join(src.Base(), ".multilock", "staging")))
}

// Nothing is retracted, and nothing made for that, where nothing is.
func TestRetractNothing(t *testing.T) {
	src := open(t, fslock.Options{Base: t.TempDir()})
	require.NoError(t, src.Retract(t.Context()))
	require.Empty(t, namesIn(t, src.Base()))
}

// Of many that publish at the same time one wins, and all are told so.
func TestPublishersRace(t *testing.T) {
	base := t.TempDir()
	told := make([]string, 8)
	var group sync.WaitGroup
	for i := range told {
		src := open(t, fslock.Options{Base: base})
		group.Go(func() {
			current, err := src.Publish(t.Context(), []byte{byte('a' + i)})
			if err != nil {
				t.Error(err)
			}
			told[i] = string(current)
		})
	}
	group.Wait()
	for _, one := range told {
		require.Equal(t, told[0], one)
	}
}

// What is in the place of a manifest, and is none, is not taken for one.
func TestManifestInTheWay(t *testing.T) {
	src := open(t, fslock.Options{Base: t.TempDir()})
	require.NoError(t, os.MkdirAll(manifestPath(src.Base()), 0o777))
	current, err := src.Publish(t.Context(), []byte("one\n"))
	require.NoError(t, err, "an empty directory is what a crash leaves")
	require.Equal(t, "one\n", string(current))

	require.NoError(t, os.Rename(filepath.Join(manifestPath(src.Base()), "list"), filepath.Join(manifestPath(src.Base()), "other")))
	_, err = src.Publish(t.Context(), []byte("one\n"))
	require.ErrorIs(t, err, multilock.ErrInvalid)
}

// Whichever operation fails or loses its reply: an answer is the manifest that
// others find, and after an error somebody can publish.
func TestManifestErrorAtEveryOperation(t *testing.T) {
	for _, retract := range []bool{false, true} {
		sweepOperations(t, 16, func(t *testing.T, n int) bool {
			var ended atomic.Bool
			sideBySide(t, faultsAt(n), func(t *testing.T, f fault) {
				if manifestWithFault(t, f, n, retract) {
					ended.Store(true)
				}
			})
			return ended.Load()
		})
	}
}

func manifestWithFault(t *testing.T, f fault, n int, retract bool) (ended bool) {
	base := fresh(t)
	other, err := fslock.Open(fslock.Options{Base: base, FS: sharedFS(), Self: elsewhere(t)})
	require.NoError(t, err)
	if retract {
		_, err := other.Publish(t.Context(), []byte("theirs\n"))
		require.NoError(t, err)
	}
	faulty := sharedFS()
	src, err := fslock.Open(fslock.Options{Base: base, FS: faulty})
	require.NoError(t, err)
	var struck atomic.Bool
	faulty.Inject(func(op faultfs.Op) error {
		if op.N != n || op.Phase != f.phase {
			return nil
		}
		struck.Store(true)
		return f.errno
	})
	want := "mine\n"
	var current []byte
	if retract {
		err = src.Retract(t.Context())
	} else {
		current, err = src.Publish(t.Context(), []byte(want))
	}
	faulty.Inject(nil)
	_ = src.Close()
	found, after := other.Publish(t.Context(), []byte("next\n"))
	require.NoError(t, after)
	switch {
	case retract && err == nil && !isGone(f):
		require.Equal(t, "next\n", string(found))
	case retract:
		require.Contains(t, []string{"theirs\n", "next\n"}, string(found))
	case err == nil:
		require.Equal(t, want, string(current))
		require.Equal(t, want, string(found))
	default:
		require.Contains(t, []string{want, "next\n"}, string(found))
	}
	require.NoError(t, other.Close())
	requireClosed(t, base)
	requireTidy(t, base)
	return !struck.Load()
}

// A process that ends before any operation leaves nothing that keeps others from
// publishing, or that the janitor does not remove.
func TestManifestCrashAtEveryOperation(t *testing.T) {
	for name, play := range map[string]func(*fslock.Source) error{
		"publish": func(src *fslock.Source) error {
			_, err := src.Publish(t.Context(), []byte("mine\n"))
			return err
		},
		"retract": func(src *fslock.Source) error { return src.Retract(t.Context()) },
	} {
		for _, before := range []string{"", "theirs\n"} {
			t.Run(name+" "+before, func(t *testing.T) {
				sweepOperations(t, 16, func(t *testing.T, n int) bool { return manifestWithCrash(t, before, play, n) })
			})
		}
	}
}

// manifestWithCrash carries nothing out from the n-th operation on: what is on disk
// then is what a crash leaves.
func manifestWithCrash(t *testing.T, before string, play func(*fslock.Source) error, n int) (ended bool) {
	base := fresh(t)
	other := open(t, fslock.Options{Base: base, FS: sharedFS(), Self: elsewhere(t)})
	if before != "" {
		_, err := other.Publish(t.Context(), []byte(before))
		require.NoError(t, err)
	}
	faulty := sharedFS()
	src := open(t, fslock.Options{Base: base, FS: faulty})
	var struck atomic.Bool
	faulty.Inject(func(op faultfs.Op) error {
		if op.N < n {
			return nil
		}
		struck.Store(true)
		return syscall.EIO
	})
	if err := play(src); !struck.Load() {
		require.NoError(t, err)
	}
	found, err := other.Publish(t.Context(), []byte("next\n"))
	require.NoError(t, err)
	require.Contains(t, []string{"mine\n", before, "next\n"}, string(found))
	requireTidy(t, base)
	return !struck.Load()
}

// isGone says that a fault is the claim that what is there is not.
func isGone(f fault) bool { return f.errno == syscall.ENOENT || f.errno == syscall.ESTALE }
