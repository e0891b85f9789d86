package fslock_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// Rule: barrier
func TestEmpty(t *testing.T) {
	base := fresh(t)
	src, rival := open(t, fslock.Options{Base: base}), open(t, fslock.Options{Base: base})
	requireEmpty(t, src, true)
	a, b := acquire(t, rival, "a", multilock.Options{}), acquire(t, src, "b", multilock.Options{})
	requireEmpty(t, src, false)
	require.NoError(t, a.Release(t.Context()))
	requireEmpty(t, src, false)
	require.NoError(t, b.Release(t.Context()))
	requireEmpty(t, src, true)
	require.NoDirExists(t, filepath.Join(base, fslock.DefaultGroup))
	requireEmpty(t, src, true)
}

// A barrier removes the group's directory while others have it open. They find the new one, and none gets
// an error.
// Rule: barrier
func TestOpenGroupSurvivesABarrier(t *testing.T) {
	for name, fs := range map[string]vfs.FS{"local": vfs.OS{}, "shared": sharedFS()} {
		t.Run(name, func(t *testing.T) { openGroupSurvives(t, fslock.Options{Base: fresh(t), FS: fs}) })
	}
}

func openGroupSurvives(t *testing.T, opt fslock.Options) {
	src, barrier, other := open(t, opt), open(t, opt), open(t, opt)
	release := func(l *multilock.Lock) { require.NoError(t, l.Release(t.Context())) }
	for range 3 {
		release(acquire(t, src, "a", multilock.Options{}))
		o := observe(t, src, "b", source.StalePolicy{})
		require.Equal(t, source.StateFree, look(t, o).State)
		requireEmpty(t, barrier, true)

		held := acquire(t, other, "b", multilock.Options{})
		require.Equal(t, source.StateHeld, look(t, o).State)
		names, err := src.Names(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"b"}, names)
		requireEmpty(t, src, false)
		_, err = multilock.TryAcquire(t.Context(), src, "b", multilock.Options{})
		require.ErrorIs(t, err, source.ErrHeld)
		release(held)
		requireEmpty(t, barrier, true)
	}
}

// Empty lists the group if the user may not write.
// Rule: barrier
func TestEmptyForThoseWhoMayOnlyRead(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EACCES, syscall.EPERM, syscall.EROFS, syscall.EBUSY} {
		t.Run(errno.Error(), func(t *testing.T) {
			base, faulty := fresh(t), sharedFS()
			src := open(t, fslock.Options{Base: base, FS: faulty})
			writer := open(t, fslock.Options{Base: base})
			faulty.Inject(faultfs.Chain(denying("rmdir", errno, -1), denying("mkdir", errno, -1)))
			requireEmpty(t, src, true)
			held := acquire(t, writer, "a", multilock.Options{})
			requireEmpty(t, src, false)
			require.NoError(t, held.Release(t.Context()))
			requireEmpty(t, src, true)
			require.DirExists(t, filepath.Join(base, fslock.DefaultGroup))
			requireEmpty(t, writer, true)
			requireEmpty(t, src, true)
		})
	}
}

// On a full disk a missing group is still reported as empty.
// Rule: barrier
func TestEmptyOnAFullDisk(t *testing.T) {
	faulty := sharedFS()
	src := open(t, fslock.Options{Base: fresh(t), FS: faulty})
	faulty.Inject(denying("mkdir", syscall.ENOSPC, -1))
	requireEmpty(t, src, true)
}

// Another barrier may remove the group that this one has just made.
// Rule: barrier
func TestEmptyBesideAnotherBarrier(t *testing.T) {
	faulty := sharedFS()
	src := open(t, fslock.Options{Base: fresh(t), FS: faulty})
	faulty.Inject(denying("rmdir", syscall.ENOENT, 2))
	requireEmpty(t, src, true)
}

// Rule: barrier
func TestEmptyErrors(t *testing.T) {
	base, faulty := fresh(t), sharedFS()
	src := open(t, fslock.Options{Base: base, FS: faulty})
	for _, kind := range []string{"rmdir", "mkdir"} {
		faulty.Inject(denying(kind, syscall.EIO, 1))
		_, err := src.Empty(t.Context())
		require.ErrorIs(t, err, syscall.EIO)
		require.ErrorAs(t, err, new(*source.OpError))
		faulty.Inject(nil)
		requireEmpty(t, src, true)
	}
	require.NoError(t, os.WriteFile(filepath.Join(base, fslock.DefaultGroup), nil, 0o666))
	_, err := src.Empty(t.Context())
	require.ErrorIs(t, err, source.ErrInvalid)
}

// A release that crashed between its two removals leaves an empty directory, which would block a barrier
// forever.
// Rule: barrier-dead
func TestTidyRemovesOnlyWhatIsEmpty(t *testing.T) {
	base := fresh(t)
	src := open(t, fslock.Options{Base: base})
	emptyDirectory(t, base, "empty")
	held := acquire(t, src, "held", multilock.Options{})
	for _, name := range []string{"empty", "held", "absent"} {
		require.NoError(t, src.Tidy(t.Context(), name))
	}
	require.NoError(t, held.Verify(t.Context()))
	require.Equal(t, []string{"held"}, namesIn(t, filepath.Join(base, fslock.DefaultGroup)))

	emptyDirectory(t, base, "in the making")
	require.NoError(t, open(t, fslock.Options{Base: base, LegacyPeers: true}).Tidy(t.Context(), "in the making"))
	require.Contains(t, namesIn(t, filepath.Join(base, fslock.DefaultGroup)), "in the making")
}

// Rule: members
func TestRevisionOfNoResults(t *testing.T) {
	src := open(t, fslock.Options{Base: fresh(t)})
	require.Empty(t, revision(t, src))
	commit(t, contendAndTry(t, src, sweptName, longClaim()), 1)
	require.NotEmpty(t, revision(t, src))
	require.NoError(t, os.RemoveAll(filepath.Join(src.Base(), ".multilock", "groups")))
	require.Empty(t, revision(t, src))
}

// Barriers repeatedly remove the group's directory while contenders come and go. None gets an error, no
// lock is held twice, and no barrier passes while a lock is held during its whole request.
// Rule: barrier, I1
func TestBarriersAndContendersInOneGroup(t *testing.T) {
	for name, kind := range map[string]vfs.FileSystem{"local": {Type: "test", Local: true}, "shared": {Type: "test"}} {
		t.Run(name, func(t *testing.T) {
			g := &busyGroup{t: t, base: fresh(t), kind: kind}
			var barriers, contenders sync.WaitGroup
			for range 4 {
				barriers.Go(g.askOften)
			}
			for i := range 6 {
				contenders.Go(func() { g.cycle(fmt.Sprintf("lock%d", i%3), 25) })
			}
			contenders.Wait()
			g.over.Store(true)
			barriers.Wait()
			require.Positive(t, g.passes.Load())
			require.Positive(t, g.refusals.Load())
			t.Logf("%d questions found the group empty, %d did not", g.passes.Load(), g.refusals.Load())
		})
	}
}

type busyGroup struct {
	t                *testing.T
	base             string
	kind             vfs.FileSystem
	over             atomic.Bool
	holding          [3]atomic.Int32
	begun, ended     atomic.Int64 // holding any lock
	passes, refusals atomic.Int64
}

func (g *busyGroup) source() *fslock.Source {
	fs := sharedFS()
	fs.Describe(g.kind)
	src, err := fslock.Open(fslock.Options{Base: g.base, FS: fs})
	g.check(err)
	return src
}

// check is for goroutines, which may not end the test.
func (g *busyGroup) check(err error) {
	if err != nil {
		g.t.Error(err)
	}
}

func (g *busyGroup) askOften() {
	src := g.source()
	defer src.Close()
	for !g.over.Load() && !g.t.Failed() {
		ended, begun := g.ended.Load(), g.begun.Load()
		empty, err := src.Empty(context.Background())
		time.Sleep(100 * time.Microsecond) // without a pause it would starve the contenders
		g.check(err)
		if !empty {
			g.refusals.Add(1)
			continue
		}
		g.passes.Add(1)
		if held := begun - ended; held > 0 && g.ended.Load() == ended {
			g.t.Errorf("the group is empty, though %d held a lock before and nobody has released one since", held)
		}
	}
}

func (g *busyGroup) cycle(name string, times int) {
	src := g.source()
	defer src.Close()
	inside := &g.holding[name[len(name)-1]-'0']
	for range times {
		if g.t.Failed() {
			return
		}
		lock, err := multilock.Acquire(within(g.t), src, name, multilock.Options{})
		if err != nil {
			g.t.Error(err)
			return
		}
		g.begun.Add(1)
		if inside.Add(1) != 1 {
			g.t.Errorf("%s is held twice", name)
		}
		g.check(lock.Verify(context.Background()))
		inside.Add(-1)
		g.ended.Add(1) // before the release begins
		g.check(lock.Release(context.Background()))
	}
}
