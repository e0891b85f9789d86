package fslock_test

import (
	"fmt"
	"os"
	"path/filepath"
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

// memory is what the client has cached: the directory that had the lock's name, "" if there was none.
type memory struct {
	on  atomic.Bool
	dir string
}

// rememberingDir is a client that answers from its cache for the lock's name, once that is switched on,
// until it has fetched the group's attributes.
type rememberingDir struct {
	vfs.Dir
	memory *memory
}

func (d rememberingDir) OpenDir(name string) (vfs.Dir, error) {
	switch {
	case name != sweptName || !d.memory.on.Load():
		return d.Dir.OpenDir(name)
	case d.memory.dir == "":
		return nil, &os.PathError{Op: "opendir", Path: name, Err: syscall.ENOENT}
	}
	return vfs.OS{}.OpenDir(d.memory.dir)
}

func (d rememberingDir) Stat() (vfs.Info, error) {
	if filepath.Base(d.Path()) == fslock.DefaultGroup {
		d.memory.on.Store(false)
	}
	return d.Dir.Stat()
}

// The read-back may find what the client has cached: no lock, or an earlier one. Neither counts before the
// server was asked: otherwise a contender whose own lock is in place would leave it there without a holder.
// Rule: rename
func TestReadBackAsksTheServerBeforeItBelievesOtherwise(t *testing.T) {
	for name, before := range map[string]bool{"that there was no lock": false, "the lock that was there before": true} {
		t.Run(name, func(t *testing.T) {
			base, m := fresh(t), &memory{}
			faulty := faultfs.New(wrapped{vfs.OS{}, func(d vfs.Dir) vfs.Dir { return rememberingDir{d, m} }}, nil)
			faulty.Describe(vfs.FileSystem{Type: "test", NFS: true})
			src := open(t, fslock.Options{Base: base, FS: faulty})
			earlier := contendAndTry(t, src, sweptName, longClaim())
			if before {
				m.dir = filepath.Join(fresh(t), sweptName)
				copyTree(t, lockPath(base), m.dir)
			}
			release(t, earlier)

			var tries atomic.Int64
			faulty.Inject(placing(base, faultfs.After, func(faultfs.Op) error {
				m.on.Store(true)
				tries.Add(1)
				return syscall.ENOENT // of a rename that was sent twice
			}))
			lock, err := multilock.TryAcquire(within(t), src, sweptName, multilock.Options{TTL: long})
			require.NoError(t, err)
			require.EqualValues(t, 1, tries.Load(), "it was in its place after the first rename")
			require.Equal(t, lock.Record().Token, tokenOnDisk(t, base))
			giveBack(t, lock)
		})
	}
}

// oneHandleDir is a file system in which every file has the same handle, as a file may get the handle of a
// removed one where the server does not count generations.
type oneHandleDir struct{ vfs.Dir }

func (d oneHandleDir) OpenDurable(name string, mode uint32) (vfs.File, error) {
	f, err := d.Dir.OpenDurable(name, mode)
	if err != nil {
		return nil, err
	}
	return oneHandleFile{f}, nil
}

func (oneHandleDir) Handle(string) (vfs.Handle, error) { return "it", nil }

type oneHandleFile struct{ vfs.File }

func (oneHandleFile) Handle() (vfs.Handle, error) { return "it", nil }

// A contender is suspended between its rename and the read-back for long enough to be judged dead. It then
// finds its successor's lock, and a handle proves nothing any more.
// Rule: rename, stopped
func TestSuccessorHasTheSameHandle(t *testing.T) {
	base := fresh(t)
	faulty := faultfs.New(wrapped{vfs.OS{}, func(d vfs.Dir) vfs.Dir { return oneHandleDir{d} }}, nil)
	faulty.Describe(vfs.FileSystem{Type: "test", NFS: true})
	src := open(t, fslock.Options{Base: base, FS: faulty})
	release(t, contendAndTry(t, src, "warm", longClaim()))
	plain := open(t, fslock.Options{Base: base, FS: sharedFS()})
	var successor source.Lease
	faulty.Inject(placing(base, faultfs.After, times(1, func(faultfs.Op) error {
		time.Sleep(sweptBeat)
		_, err := multilock.Break(within(t), plain, sweptName, multilock.BreakOptions{Alive: true})
		require.NoError(t, err)
		successor = contendAndTry(t, plain, sweptName, longClaim())
		return nil
	})))
	refuse(t, contend(t, src, sweptName, sweptClaim()))
	require.Equal(t, successor.Record().Token, tokenOnDisk(t, base))
	require.NoError(t, successor.Renew(t.Context()))
}

// A handle that comes so late that another process may have held the lock since proves nothing: the file is
// read.
// Rule: rename
func TestHandleThatComesLate(t *testing.T) {
	_, faulty, src := contested(t, scene{})
	waiter := contend(t, src, sweptName, source.Claim{TTL: time.Hour, Heartbeat: 2 * time.Second})
	read := false
	faulty.Inject(func(op faultfs.Op) error {
		if op.Kind == "handle" && op.Phase == faultfs.Before {
			time.Sleep(time.Second) // half a heartbeat
		}
		read = read || op.Kind == "open"
		return nil
	})
	try(t, waiter)
	require.True(t, read)
}

// oldDir is a client that enters the directories of these names as they were at first.
type oldDir struct {
	vfs.Dir
	were map[string]vfs.Dir
}

func (d oldDir) Enter(name string) (vfs.Dir, error) {
	was := d.were[name]
	if was == nil {
		return d.Dir.Enter(name)
	}
	number, err := was.Pin()
	if err != nil {
		return nil, err
	}
	defer was.Unpin()
	return vfs.OS{}.OpenDir(fmt.Sprintf("/proc/self/fd/%d", number))
}

// A directory in a client's cache may be gone, and another in its place, when a process starts: a call in
// it fails, and it is opened again.
// Rule: stale-names
func TestDirectoryIsRememberedThatIsGone(t *testing.T) {
	base, _, before := contested(t, scene{})
	lease := contendAndTry(t, before, sweptName, longClaim())
	fence(t, lease)
	commit(t, lease, 1)
	require.NoError(t, before.Append(t.Context(), eventAt(time.Now(), sweptName)))
	release(t, lease)
	were := map[string]vfs.Dir{}
	private := filepath.Join(base, ".multilock")
	for _, path := range []string{"staging", "groups", "groups/.locks/fence", "groups/.locks/history", "groups/.locks/done", "../.locks"} {
		dir, err := vfs.OS{}.OpenDir(filepath.Join(private, path))
		require.NoError(t, err)
		t.Cleanup(func() { _ = dir.Close() })
		were[filepath.Base(path)] = dir
	}
	delete(were, "groups") // only its entries are looked at
	for _, gone := range []string{"staging", "groups", "../.locks"} {
		require.NoError(t, os.RemoveAll(filepath.Join(private, gone)))
	}
	faulty := faultfs.New(wrapped{vfs.OS{}, func(d vfs.Dir) vfs.Dir { return oldDir{d, were} }}, nil)
	faulty.Describe(vfs.FileSystem{Type: "test", NFS: true})
	opened := func() *fslock.Source { return open(t, fslock.Options{Base: base, FS: faulty}) }

	_, err := opened().Now(t.Context())
	require.NoError(t, err)
	_, err = opened().Result(t.Context(), sweptName)
	require.ErrorIs(t, err, source.ErrNoResult)
	require.Equal(t, source.StateFree, look(t, observe(t, opened(), sweptName, source.StalePolicy{})).State)
	src := opened()
	lease = contendAndTry(t, src, sweptName, longClaim())
	require.Equal(t, source.StateHeld, look(t, observe(t, opened(), sweptName, source.StalePolicy{})).State)
	require.EqualValues(t, 1, fence(t, lease))
	outcome(t, lease, source.ErrNoResult)
	commit(t, lease, 1)
	require.NoError(t, src.Append(t.Context(), eventAt(time.Now(), sweptName)))
	events, err := source.Collect(opened().History(t.Context(), time.Time{}))
	require.NoError(t, err)
	require.Len(t, events, 1)
	release(t, lease)
	result, err := opened().Result(t.Context(), sweptName)
	require.NoError(t, err)
	require.True(t, result.OK())
}
