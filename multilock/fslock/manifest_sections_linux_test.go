package fslock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

// A section can replace all before it, for readers and for publishers.
// Rule: replace
func TestManifestIsReplaced(t *testing.T) {
	src := open(t, fslock.Options{Base: t.TempDir()})
	const whole = source.Whole + " two\n"
	grown := func(known int, want bool) {
		t.Helper()
		got, err := src.Grown(t.Context(), known)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	grown(1, false)
	publishes(t, src, "one\n", "one\n")
	grown(1, false)
	known := [][]byte{[]byte("one\n")}
	for n, more := range []string{"more\n", whole, "three\n"} {
		done, err := src.Continue(t.Context(), known, []byte(more))
		require.NoError(t, err)
		require.True(t, done)
		known = append(known, []byte(more))
		grown(n+1, true)
		grown(n+2, false)
	}
	publishes(t, src, "one\n", whole)
	require.Equal(t, whole+"three\n", readManifest(t, src))
	require.True(t, src.OnlyOurs())
	require.NoError(t, src.Retract(t.Context()))
	grown(1, false)
	publishes(t, src, "one\n", "one\n")
}

// A manifest is continued by a host that knows all of it, and is retracted as a whole.
// Rule: add
func TestManifestGrows(t *testing.T) {
	src := open(t, fslock.Options{Base: t.TempDir()})
	list := func(sections ...string) (list [][]byte) {
		for _, section := range sections {
			list = append(list, []byte(section))
		}
		return list
	}
	_, err := src.Sections(t.Context(), 100)
	require.ErrorIs(t, err, fs.ErrNotExist)
	grow := func(done bool, more string, known ...string) {
		t.Helper()
		grown, err := src.Continue(t.Context(), list(known...), []byte(more))
		require.NoError(t, err)
		require.Equal(t, done, grown)
	}
	grow(false, "two\n", "one\n")
	publishes(t, src, "one\n", "one\n")
	grow(false, "two\n", "another\n")
	grow(true, "two\n", "one\n")
	grow(true, "two\n", "one\n") // by another host
	grow(false, "three\n", "one\n")
	grow(true, "three\n", "one\n", "two\n")
	publishes(t, src, "one\n", "one\n")
	sections, err := src.Sections(t.Context(), 100)
	require.NoError(t, err)
	require.Equal(t, list("one\n", "two\n", "three\n"), sections)
	sections, err = src.Sections(t.Context(), 6)
	require.NoError(t, err)
	require.Equal(t, list("one\n", "tw", ""), sections)
	require.Equal(t, "one\ntwo\nthree\n", readManifest(t, src))

	require.NoError(t, src.Retract(t.Context()))
	require.Empty(t, namesIn(t, filepath.Join(src.Base(), ".multilock", "staging")))
	publishes(t, src, "four\n", "four\n")
	require.Equal(t, "four\n", readManifest(t, src))
	grow(false, "two\n", "one\n")
}

func publishes(t *testing.T, src *fslock.Source, list, current string) {
	t.Helper()
	got, err := src.Publish(t.Context(), []byte(list))
	require.NoError(t, err)
	require.Equal(t, current, string(got))
}

func readManifest(t *testing.T, src *fslock.Source) string {
	t.Helper()
	manifest, err := src.OpenManifest(t.Context())
	require.NoError(t, err)
	text, err := io.ReadAll(manifest)
	require.NoError(t, errors.Join(err, manifest.Close()))
	return string(text)
}

// A manifest may have hundreds of sections.
// Rule: add
func TestManifestGrowsForAWhile(t *testing.T) {
	src := open(t, fslock.Options{Base: t.TempDir()})
	publishes(t, src, "0\n", "0\n")
	known := [][]byte{[]byte("0\n")}
	for {
		more := fmt.Appendf(nil, "%d\n", len(known))
		grown, err := src.Continue(t.Context(), known, more)
		if err != nil {
			require.ErrorIs(t, err, source.ErrInvalid)
			break
		}
		require.True(t, grown)
		known = append(known, more)
	}
	require.Len(t, known, 201)
	require.Equal(t, string(bytes.Join(known, nil)), readManifest(t, src))
	require.NoError(t, src.Retract(t.Context()))
	require.Empty(t, namesIn(t, filepath.Join(src.Base(), ".multilock", "staging")))
}

// A retracted manifest that was left in staging is swept as one of ours.
// Rule: add, staging
func TestGrownManifestIsSwept(t *testing.T) {
	src := open(t, fslock.Options{Base: t.TempDir()})
	publishes(t, src, "one\n", "one\n")
	grown, err := src.Continue(t.Context(), [][]byte{[]byte("one\n")}, []byte("two\n"))
	require.NoError(t, err)
	require.True(t, grown)
	staging := filepath.Join(src.Base(), ".multilock", "staging")
	trash := filepath.Join(staging, ".trash-"+source.NewToken()+".manifest")
	require.NoError(t, os.Rename(manifestPath(src.Base()), trash))
	old := time.Now().Add(-48 * time.Hour)
	require.NoError(t, os.Chtimes(trash, old, old))
	swept, err := src.Sweep(t.Context())
	require.NoError(t, err)
	require.Len(t, swept, 1)
	require.False(t, swept[0].Strange, swept[0].Why)
	require.Empty(t, namesIn(t, staging))
}

// Of many that concurrently continue a manifest, while others retract it, each learns the current one.
// Rule: add
func TestManifestGrowsAmongOthers(t *testing.T) {
	base := t.TempDir()
	var group sync.WaitGroup
	for i := range 6 {
		src, more := open(t, fslock.Options{Base: base}), []byte{byte('a' + i), '\n'}
		group.Go(func() {
			for range 30 {
				if _, err := src.Publish(t.Context(), []byte("one\n")); err != nil {
					t.Error(err)
				}
				known, err := src.Sections(t.Context(), 1000)
				if errors.Is(err, fs.ErrNotExist) {
					continue
				}
				if err == nil {
					_, err = src.Continue(t.Context(), known, more)
				}
				if i == 0 {
					err = errors.Join(err, src.Retract(t.Context()))
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	left, err := open(t, fslock.Options{Base: base}).Leftovers(t.Context())
	require.NoError(t, err)
	for _, l := range left { // sections that were added to one that was being removed
		require.False(t, l.Strange, l.Why)
	}
}

func (p *player) grow() error {
	done, err := p.src.Continue(context.Background(), [][]byte{[]byte(theirManifest)}, []byte(myManifest))
	if p.list = theirManifest; done {
		p.list += myManifest
	}
	return err
}

func prepareGrown(p *player) error {
	if err := prepareManifest(p); err != nil {
		return err
	}
	_, err := p.plain.Continue(context.Background(), [][]byte{[]byte(theirManifest)}, []byte(myManifest))
	return err
}

// requireGrown: the list is longer if that was the answer, and stays as long as others find it. After an
// error, or if it has to be read again, it can be continued.
func requireGrown(t *testing.T, o struck) {
	t.Helper()
	found := readManifest(t, o.plain)
	require.Contains(t, o.scene.lists, found)
	if o.err == nil && o.list != theirManifest {
		require.Equal(t, o.list, found)
	}
	known, err := o.plain.Sections(t.Context(), 100)
	require.NoError(t, err)
	grown, err := o.plain.Continue(t.Context(), known, []byte(nextManifest))
	require.NoError(t, err)
	require.True(t, grown)
	require.Equal(t, found+nextManifest, readManifest(t, o.plain))
}
