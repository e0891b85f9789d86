package fslock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// oneHandle is a file system in which every file has the same handle, as each may get
// that of one which is gone where nobody counts generations.
type oneHandle struct{ vfs.FS }

func (o oneHandle) OpenDir(path string) (vfs.Dir, error) { return withOneHandle(o.FS.OpenDir(path)) }

type oneHandleDir struct{ vfs.Dir }

func withOneHandle(d vfs.Dir, err error) (vfs.Dir, error) {
	if err != nil {
		return nil, err
	}
	return oneHandleDir{d}, nil
}

func (d oneHandleDir) OpenDir(name string) (vfs.Dir, error) {
	return withOneHandle(d.Dir.OpenDir(name))
}

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

// A contender stands still between its rename and the read-back, for long enough to be
// taken for dead. What it finds then is its successor's lock, and a handle is no proof
// of anything any more.
func TestSuccessorHasTheSameHandle(t *testing.T) {
	base := fresh(t)
	faulty := faultfs.New(oneHandle{vfs.OS{}}, nil)
	faulty.Describe(vfs.FileSystem{Type: "test", NFS: true})
	src := open(t, fslock.Options{Base: base, FS: faulty})
	release(t, contendAndTry(t, src, "warm", longClaim()))
	plain := open(t, fslock.Options{Base: base, FS: sharedFS()})
	var successor source.Lease
	faulty.Inject(placing(base, faultfs.After, times(1, func(faultfs.Op) error {
		time.Sleep(sweptBeat)
		_, err := multilock.Break(within(t), plain, sweptName, multilock.Want{Alive: true})
		require.NoError(t, err)
		successor = contendAndTry(t, plain, sweptName, longClaim())
		return nil
	})))
	refuse(t, contend(t, src, sweptName, sweptClaim()))
	require.Equal(t, successor.Record().Token, tokenOnDisk(t, base))
	require.NoError(t, successor.Renew(t.Context()))
}

// A handle that comes so late that somebody may have had the lock since proves nothing:
// the file is read.
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
