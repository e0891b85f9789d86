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

// A manifest is continued by whoever knows all of it, and goes as a whole.
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

// So many sections are no burden for anybody.
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

// A retracted manifest that was left in staging is no stranger's.
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

// Of many that continue a manifest at the same time, while others retract it, each is told what
// is there.
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
	for _, l := range left { // what came into one that was being removed
		require.False(t, l.Strange, l.Why)
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

// Where a manifest should be there may be a link to a directory: what that has is left alone.
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

// A link in the place of the directory that was just made for a manifest leads nowhere.
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

// requireGrown: the list is longer if that was answered, and stays as long as others find it.
// After an error, or if it is to be read again, somebody can continue it.
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

// follow reads to the end of what there is.
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

// A line is read when it has an end, and what is no event is passed over.
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
	require.Len(t, all, 2, "only its end is missing")
	add(line[len(line)-1:])
	require.Equal(t, []string{"a"}, follow(t, f))
	add(append([]byte("{\"torn\n\x00\x00\n"), line...))
	require.Equal(t, []string{"a"}, follow(t, f))
}

// A large history is read in parts, and none of it is lost between them.
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

// The history is in the order of time, whichever hosts wrote it. Nothing is written for
// no event.
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
