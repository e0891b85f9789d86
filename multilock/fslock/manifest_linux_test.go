package fslock_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
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

const theirManifest, myManifest, nextManifest = "theirs\n", "mine\n", "next\n"

func prepareManifest(p *player) error {
	_, err := p.plain.Publish(context.Background(), []byte(theirManifest))
	return err
}

func (p *player) publish() error {
	list, err := p.src.Publish(context.Background(), []byte(myManifest))
	p.list = string(list)
	return err
}

func (p *player) retract() error { return p.src.Retract(context.Background()) }

// listThere is the manifest that there is, or one that is published now.
func listThere(t *testing.T, src *fslock.Source) string {
	t.Helper()
	found, err := src.Publish(t.Context(), []byte(nextManifest))
	require.NoError(t, err)
	return string(found)
}

// requirePublished: an answer is the manifest that others find, and after an error
// somebody can publish.
func requirePublished(t *testing.T, o struck) {
	t.Helper()
	found := listThere(t, o.plain)
	require.Contains(t, o.scene.lists, found)
	if o.err == nil {
		require.Equal(t, o.list, found)
		require.NotEqual(t, nextManifest, found)
	}
}

func requireRetracted(t *testing.T, o struck) {
	t.Helper()
	found := listThere(t, o.plain)
	require.Contains(t, o.scene.lists, found)
	if o.err == nil && !o.lie {
		require.Equal(t, nextManifest, found)
	}
}

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
