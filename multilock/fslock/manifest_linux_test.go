package fslock_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/testkit/actor"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
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
	require.ErrorIs(t, err, source.ErrInvalid)
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

// manifestScenes are about the group's list of jobs; no lock is taken in them.
func manifestScenes() []scene {
	return []scene{
		{name: "publish", prepare: prepareNothing, play: playPublish},
		{name: "publish where there is one", prepare: prepareManifest, play: playPublish},
		{name: "retract", prepare: prepareManifest, play: playRetract},
	}
}

const theirManifest, myManifest, nextManifest = "theirs\n", "mine\n", "next\n"

func prepareManifest(p *player) error {
	_, err := p.plain.Publish(context.Background(), []byte(theirManifest))
	return err
}

func playPublish(p *player) error {
	_, err := p.src.Publish(context.Background(), []byte(myManifest))
	return err
}

func playRetract(p *player) error { return p.src.Retract(context.Background()) }

// A process that is killed at any operation leaves no manifest or a whole one, nothing
// that keeps others from publishing, and nothing that the janitor does not remove.
func TestManifestCrashAtEveryOperation(t *testing.T) {
	slots := make(slots, 8)
	sideBySide(t, manifestScenes(), func(t *testing.T, s scene) {
		for _, phase := range phases() {
			sweepOperations(t, 8, func(t *testing.T, n int) bool {
				defer slots.enter()()
				return manifestWithCrash(t, s, n, phase)
			})
		}
	})
}

func manifestWithCrash(t *testing.T, s scene, n int, phase faultfs.Phase) (ended bool) {
	base := fresh(t)
	child := startVictim(t, strike{Base: base, Scene: s.name, How: "crash", N: n, Phase: phase})
	ended = child.Await(t) != actor.Killed
	err := child.Wait()
	if ended {
		require.NoError(t, err)
	}
	for _, who := range views(t) {
		place := fresh(t)
		copyTree(t, base, place)
		other := open(t, fslock.Options{Base: place, FS: sharedFS(), Self: who})
		found, err := other.Publish(t.Context(), []byte(nextManifest))
		require.NoError(t, err)
		require.Contains(t, map[string][]string{
			"publish":                    {myManifest, nextManifest},
			"publish where there is one": {theirManifest},
			"retract":                    {theirManifest, nextManifest},
		}[s.name], string(found))
		require.NoError(t, other.Retract(t.Context()))
		requireTidy(t, place)
	}
	return ended
}

// isGone says that a fault is the claim that what is there is not.
func isGone(f fault) bool { return f.errno == syscall.ENOENT || f.errno == syscall.ESTALE }

// What keeps a list from being published or retracted is told.
func TestManifestMeetsAnError(t *testing.T) {
	for _, c := range []struct{ kind, part string }{
		{"opendir", "staging"}, {"mkdir", ".manifest"}, {"create", "list"}, {"write", "list"}, {"sync", "list"}, {"rename", ".manifest"}, {"syncdir", ""},
	} {
		t.Run(c.kind, func(t *testing.T) {
			faulty := localFS()
			src := open(t, fslock.Options{Base: t.TempDir(), FS: faulty})
			_, err := src.Publish(t.Context(), []byte(theirManifest))
			require.NoError(t, err)
			require.NoError(t, src.Retract(t.Context()))
			src = open(t, fslock.Options{Base: src.Base(), FS: faulty})
			faulty.Inject(denyingAt(c.kind, c.part, syscall.ENOSPC, -1))
			_, err = src.Publish(t.Context(), []byte(myManifest))
			require.ErrorIs(t, err, syscall.ENOSPC)
			faulty.Inject(nil)
			_, err = src.Publish(t.Context(), []byte(myManifest))
			require.NoError(t, err)
			if c.kind == "opendir" || c.kind == "rename" {
				src = open(t, fslock.Options{Base: src.Base(), FS: faulty})
				faulty.Inject(denyingAt(c.kind, c.part, syscall.EACCES, -1))
				require.ErrorIs(t, src.Retract(t.Context()), syscall.EACCES)
			}
		})
	}
}
