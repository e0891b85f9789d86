package fslock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

func manifestPath(base string) string {
	return filepath.Join(base, ".multilock", "groups", fslock.DefaultGroup, "manifest")
}

// Rule: manifest
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

// Without a manifest, nothing is retracted, and nothing is made for that.
// Rule: manifest
func TestRetractNothing(t *testing.T) {
	src := open(t, fslock.Options{Base: t.TempDir()})
	require.NoError(t, src.Retract(t.Context()))
	require.Empty(t, namesIn(t, src.Base()))
}

// Of many concurrent publishers one wins, and all learn which.
// Rule: manifest
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

// A file or directory in the place of a manifest does not count as one.
// Rule: manifest
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

// A link to a directory may be in the place of a manifest: the directory's content does not change.
// Rule: manifest
func TestRetractThroughALink(t *testing.T) {
	src, elsewhere := open(t, fslock.Options{Base: t.TempDir()}), t.TempDir()
	list := filepath.Join(elsewhere, "list")
	require.NoError(t, os.WriteFile(list, []byte("precious\n"), 0o600))
	require.NoError(t, os.MkdirAll(filepath.Dir(manifestPath(src.Base())), 0o777))
	require.NoError(t, os.Symlink(elsewhere, manifestPath(src.Base())))
	require.NoError(t, src.Retract(t.Context()))
	require.FileExists(t, list)
	require.Empty(t, namesIn(t, filepath.Join(src.Base(), ".multilock", "staging")))
	current, err := src.Publish(t.Context(), []byte("one\n"))
	require.NoError(t, err)
	require.Equal(t, "one\n", string(current))
}

// A link that replaces the directory that was just made for a manifest is not followed.
// Rule: manifest
func TestPublishThroughALink(t *testing.T) {
	faulty, elsewhere := localFS(), t.TempDir()
	src := open(t, fslock.Options{Base: t.TempDir(), FS: faulty})
	faulty.Inject(at("mkdir", faultfs.After, "", func(op faultfs.Op) error {
		if !strings.HasSuffix(op.Real, ".manifest") {
			return nil
		}
		return errors.Join(os.Remove(op.Real), os.Symlink(elsewhere, op.Real))
	}))
	_, err := src.Publish(t.Context(), []byte("one\n"))
	require.ErrorIs(t, err, syscall.ENOTDIR)
	require.Empty(t, namesIn(t, elsewhere))
	require.Empty(t, namesIn(t, filepath.Join(src.Base(), ".multilock", "staging")))
}

// An entry that blocks the manifest for good is reported.
// Rule: manifest
func TestPublishWhereSomethingElseIs(t *testing.T) {
	src := open(t, fslock.Options{Base: t.TempDir()})
	require.NoError(t, os.MkdirAll(filepath.Join(manifestPath(src.Base()), "notes"), 0o777))
	_, err := src.Publish(t.Context(), []byte("one\n"))
	require.ErrorIs(t, err, source.ErrInvalid)
	require.ErrorContains(t, err, manifestPath(src.Base())+" is not the directory of a manifest; move it away")
}

// Other hosts place and retract manifests right before each look and after each attempt: none of those
// counts as an entry that blocks the manifest.
// Rule: manifest
func TestPublishWhileOthersComeAndGo(t *testing.T) {
	faulty, base := localFS(), t.TempDir()
	src, other := open(t, fslock.Options{Base: base, FS: faulty}), open(t, fslock.Options{Base: base})
	publishes := func(faultfs.Op) error { _, err := other.Publish(t.Context(), []byte("theirs\n")); return err }
	retracts := func(faultfs.Op) error { return other.Retract(t.Context()) }
	manifest := manifestPath(base)
	faulty.Inject(faultfs.Chain(
		at("rename", faultfs.Before, manifest, times(1, publishes)), at("rename", faultfs.After, manifest, times(1, retracts)),
		at("mkdir", faultfs.Before, manifest, times(1, publishes)), at("rmdir", faultfs.After, manifest, times(1, retracts)),
	))
	current, err := src.Publish(t.Context(), []byte("mine\n"))
	require.NoError(t, err)
	require.Equal(t, "mine\n", string(current))
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

// listThere is the current manifest, or one that it publishes.
func listThere(t *testing.T, src *fslock.Source) string {
	t.Helper()
	found, err := src.Publish(t.Context(), []byte(nextManifest))
	require.NoError(t, err)
	return string(found)
}

// requirePublished: an answer is the manifest that others find, and after an error a manifest can be
// published.
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

// An error that prevents publishing or retracting a list is reported.
// Rule: manifest
func TestManifestMeetsAnError(t *testing.T) {
	for _, c := range []struct{ kind, part string }{
		{"enter", "staging"}, {"mkdir", ".manifest"}, {"create", "list"}, {"write", "list"}, {"sync", "list"}, {"rename", ".manifest"}, {"syncdir", ""},
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
			if c.kind == "enter" || c.kind == "rename" {
				src = open(t, fslock.Options{Base: src.Base(), FS: faulty})
				faulty.Inject(denyingAt(c.kind, c.part, syscall.EACCES, -1))
				require.ErrorIs(t, src.Retract(t.Context()), syscall.EACCES)
			}
		})
	}
}

func historyDir(base string) string {
	return filepath.Join(base, ".multilock", "groups", fslock.DefaultGroup, "history")
}

// follow reads to the current end.
func follow(t *testing.T, f source.Follower) []string {
	t.Helper()
	names := []string{}
	for {
		events, err := f.Next(t.Context())
		require.NoError(t, err)
		if len(events) == 0 {
			return names
		}
		for _, e := range events {
			names = append(names, e.Name)
		}
	}
}

// Rule: history
func TestFollowReadsWhatIsNew(t *testing.T) {
	base := t.TempDir()
	here, there := open(t, fslock.Options{Base: base}), open(t, fslock.Options{Base: base, Self: elsewhere(t)})
	now := time.Now()
	f := here.Follow(now.Add(-time.Hour))
	defer f.Close()
	require.Empty(t, follow(t, f), "there is no history yet")

	require.NoError(t, there.Record(t.Context(), []source.Event{eventAt(now, "a"), eventAt(now, "b")}))
	require.NoError(t, here.Record(t.Context(), []source.Event{eventAt(now.Add(-2*time.Hour), "too old")}))
	require.Equal(t, []string{"a", "b"}, follow(t, f))
	require.Empty(t, follow(t, f))

	require.NoError(t, here.Append(t.Context(), eventAt(now, "c")))
	require.NoError(t, there.Append(t.Context(), eventAt(now, "d")))
	require.ElementsMatch(t, []string{"c", "d"}, follow(t, f))
	require.Empty(t, follow(t, f))
}

// Events of several days go to the files of those days, and are found there.
// Rule: history
func TestRecordOfSeveralDays(t *testing.T) {
	src := open(t, fslock.Options{Base: t.TempDir()})
	now := time.Now()
	var events []source.Event
	for days := range 3 {
		events = append(events, eventAt(now.AddDate(0, 0, -days), fmt.Sprint(days)), eventAt(now.AddDate(0, 0, -days), fmt.Sprint(days)))
	}
	require.NoError(t, src.Record(t.Context(), events))
	require.Len(t, namesIn(t, historyDir(src.Base())), 3)
	all, err := source.Collect(src.History(t.Context(), now.AddDate(0, 0, -3)))
	require.NoError(t, err)
	require.Len(t, all, 6)
	f := src.Follow(now.Add(-time.Hour))
	defer f.Close()
	require.Equal(t, []string{"0", "0"}, follow(t, f))
}

// A line is read once it is complete, and lines that are not events are skipped.
// Rule: history
func TestFollowPassesOverWhatIsTorn(t *testing.T) {
	src := open(t, fslock.Options{Base: t.TempDir()})
	require.NoError(t, src.Append(t.Context(), eventAt(time.Now(), "a")))
	file := filepath.Join(historyDir(src.Base()), namesIn(t, historyDir(src.Base()))[0])
	line, err := os.ReadFile(file)
	require.NoError(t, err)
	f := src.Follow(time.Time{})
	defer f.Close()
	require.Equal(t, []string{"a"}, follow(t, f))

	add := func(data []byte) {
		t.Helper()
		w, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = w.Write(data)
		require.NoError(t, err)
		require.NoError(t, w.Close())
	}
	add(line[:len(line)-1])
	require.Empty(t, follow(t, f))
	all, err := source.Collect(src.History(t.Context(), time.Time{}))
	require.NoError(t, err)
	require.Len(t, all, 2, "only it is truncated")
	add(line[len(line)-1:])
	require.Equal(t, []string{"a"}, follow(t, f))
	add(append([]byte("{\"torn\n\x00\x00\n"), line...))
	require.Equal(t, []string{"a"}, follow(t, f))
}

// A large history is read in parts, and no event is lost between them.
// Rule: history
func TestFollowLargeHistory(t *testing.T) {
	src := open(t, fslock.Options{Base: t.TempDir()})
	var events []source.Event
	for i := range 5000 {
		events = append(events, eventAt(time.Now(), fmt.Sprint(i)))
	}
	require.NoError(t, src.Record(t.Context(), events))
	f := src.Follow(time.Time{})
	defer f.Close()
	first, err := f.Next(t.Context())
	require.NoError(t, err)
	require.Less(t, len(first), len(events))
	rest := follow(t, f)
	require.Equal(t, len(events), len(first)+len(rest))
	require.Equal(t, "4999", rest[len(rest)-1])
}

// The history is in order of time, whichever hosts wrote it. Recording no events writes nothing.
// Rule: history
func TestHistoryIsInTheOrderOfTime(t *testing.T) {
	base := t.TempDir()
	hosts := []*fslock.Source{open(t, fslock.Options{Base: base}), open(t, fslock.Options{Base: base, Self: elsewhere(t)})}
	require.NoError(t, hosts[0].Record(t.Context(), nil))
	require.Empty(t, namesIn(t, base))
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for i := range 6 {
		require.NoError(t, hosts[i%2].Append(t.Context(), eventAt(noon.Add(time.Duration(i)*time.Minute), fmt.Sprint(i))))
	}
	events, err := source.Collect(hosts[0].History(t.Context(), time.Time{}))
	require.NoError(t, err)
	require.Len(t, events, 6)
	for i, e := range events {
		require.Equal(t, fmt.Sprint(i), e.Name)
	}
}
