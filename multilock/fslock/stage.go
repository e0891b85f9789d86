package fslock

import (
	"bytes"
	"errors"
	"syscall"
	"time"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// staged is a prepared lock: a directory with the lock file in it, under a name that only this process
// knows. It may be in place already, if a rename was carried out.
type staged struct {
	src     *Source
	token   string
	name    string // the lock's name
	content []byte
	file    fileIdentity      // of the lock file
	parent  *shareddir.Handle // the staging directory
	sign    boottime.Instant  // before the server set the directory's time
	made    boottime.Instant  // before the server set the lock file's time
}

// stage prepares a lock. Each attempt that is in doubt needs a new one.
//
// The names are random, so EEXIST means that the client repeated a request whose first reply was lost.
func (s *Source) stage(name string, claim source.Claim) (st *staged, err error) {
	for range shareddir.Rounds() {
		st, err = s.stageOnce(name, claim)
		if !errors.Is(err, errStagingGone) && !is(err, syscall.EEXIST) {
			break
		}
	}
	return st, err
}

// errStagingGone is for ENOENT, which an SMB server also returns for a name that no file can have.
var errStagingGone = errors.New("the staging directory was removed meanwhile; if this message comes again and again, no file there can have this name")

func (s *Source) stageOnce(name string, claim source.Claim) (*staged, error) {
	token := source.NewToken()
	record := source.Record{Name: name, Token: token, Claim: claim, Prepared: time.Now()} //nolint:forbidigo // for people
	content, err := encodeRecord(s.group, record)
	if err != nil {
		return nil, opError("stage", name, err)
	}
	parent, err := s.base.Staging.Use()
	if err != nil {
		return nil, s.base.StagingError(err)
	}
	st := &staged{src: s, token: token, name: name, content: content, parent: parent, made: s.clock.Now()}
	st.sign = st.made
	if err := st.prepare(claim); err != nil {
		_ = st.discard() // what cannot be removed is a leftover, and blocks nothing
		if gone(err) {
			s.base.Staging.Drop(parent)
			err = errStagingGone
		}
		return nil, opError("stage", name, err)
	}
	return st, nil
}

// prepare makes the directory, and in it the lock file.
func (st *staged) prepare(claim source.Claim) error {
	if err := st.parent.Mkdir(st.token, shareddir.DirMode); err != nil {
		return err
	}
	return st.within(func(dir vfs.Dir) error {
		if err := st.guard(dir); err != nil {
			return err
		}
		return st.write(dir, claim)
	})
}

// within calls do with the staged directory, if it still has its own name. The name is random, but any user
// with write permission for the staging directory can list it.
func (st *staged) within(do func(dir vfs.Dir) error) error {
	dir, err := st.parent.Enter(st.token)
	if err != nil {
		return err
	}
	return errors.Join(do(dir), dir.Close())
}

// guard protects a lock directory from a Python peer that stopped between its mkdir and its next step, for
// so long that its directory was cleared: when it continues, by path, the name of its lock file is taken by
// a directory, over which it can neither create the file nor rename it.
func (st *staged) guard(dir vfs.Dir) error {
	if !st.src.legacy {
		return nil
	}
	return dir.Mkdir(st.name+peerSuffix, shareddir.DirMode)
}

// write fills the lock file. If other kernels may read the file, or the lock is to outlive this one (it is
// not renewed), the file is synced, so that its content is never stored after its name; otherwise
// unsyncedMark records that it was not synced.
func (st *staged) write(dir vfs.Dir, claim source.Claim) error {
	sync := !st.src.base.Kind.Local || claim.Heartbeat == 0
	mode := uint32(shareddir.FileMode)
	if !sync {
		mode |= unsyncedMark
	}
	f, err := st.create(dir, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(st.content)
	if err == nil && sync {
		err = f.Sync()
	}
	if err == nil {
		st.file = st.src.identityOf(f)
	}
	return errors.Join(err, f.Close())
}

// create makes the lock file. Its directory is new and only this process knows its name, so O_EXCL is not
// needed. On NFS it would cost one more request (version 4 sets the times afterwards), and fail the
// repetition of a create whose reply was lost. A file that another user has put there is not overwritten.
func (st *staged) create(dir vfs.Dir, mode uint32) (vfs.File, error) {
	if st.src.base.Kind.Local {
		return dir.Create(st.name+lockedSuffix, mode)
	}
	f, err := dir.OpenDurable(st.name+lockedSuffix, mode)
	if err != nil {
		return nil, err
	}
	info, err := f.StatCached()
	if err == nil && info.Size > 0 {
		err = errForeign
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

var errForeign = errors.New("another process has put a file into the directory that was prepared")

// freshen gives a lock that was staged a while ago a new time, so that it does not look stale as soon as it
// is in place. A failure only leaves the old time.
func (st *staged) freshen(limit time.Duration) {
	if st.src.clock.Elapsed(st.sign) < limit {
		return
	}
	start := st.src.clock.Now()
	if st.parent.TouchFile(st.token) == nil {
		st.sign = start
	}
}

// discard removes the staged lock, wherever it is by now, and reports whether that is certain. The file
// goes first: if a rename in doubt is carried out afterwards, it places an empty directory, which is a free
// lock. If the file is not where it was staged, the rename has been carried out.
func (st *staged) discard() error {
	err := st.within(func(dir vfs.Dir) error { return dir.Unlink(st.name + lockedSuffix) })
	if gone(err) {
		err = st.discardPlaced()
	}
	if err == nil && st.src.legacy { // the janitor removes what is left
		_ = st.within(func(dir vfs.Dir) error { return dir.Rmdir(st.name + peerSuffix) })
	}
	_ = st.parent.Rmdir(st.token)
	st.settle()
	return err
}

// discardPlaced removes the lock that is in place, if it is this one.
func (st *staged) discardPlaced() error {
	group, err := st.src.groupDir.Use()
	if err != nil {
		return ignoreGone(err)
	}
	defer st.src.groupDir.Done(group)
	dir, content, err := st.src.openFresh(group, st.name)
	if dir == nil {
		return ignoreGone(err)
	}
	defer dir.Close() //nolint:errcheck // a directory
	if !bytes.Equal(content, st.content) {
		return ignoreGone(err)
	}
	if err := dir.Unlink(st.name + lockedSuffix); err != nil {
		return ignoreGone(err)
	}
	st.src.removeEmpty(group, dir, st.name)
	return nil
}

// settle ends the staging: the lock is in place and has a lease, or it is gone.
func (st *staged) settle() { st.src.base.Staging.Done(st.parent) }

// present reports whether the staged directory still has its own name.
func (st *staged) present() (bool, error) {
	if _, err := st.parent.Stat(); err != nil && !gone(err) {
		return false, err
	}
	_, err := st.parent.StatName(st.token)
	if gone(err) {
		return false, nil
	}
	return err == nil, err
}

// fileIdentity distinguishes the lock file that a contender wrote from any other that may get its name, as
// far as the file system allows.
type fileIdentity struct {
	handle        vfs.Handle // on NFS, if there is one
	device, inode uint64     // zero if they are unknown, or prove nothing
}

// identityOf sends no request. Unknown parts are not compared.
func (s *Source) identityOf(f vfs.File) (id fileIdentity) {
	if s.base.Kind.NFS {
		id.handle, _ = f.Handle()
	}
	if !s.base.InodesCount() {
		return id
	}
	if info, err := f.StatCached(); err == nil {
		id.device, id.inode = info.Device, info.Inode
	}
	return id
}

// isAnother reports that info is that of another file.
func (id fileIdentity) isAnother(info vfs.Info) bool {
	return id.inode != 0 && (info.Inode != id.inode || info.Device != id.device)
}
