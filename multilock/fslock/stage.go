package fslock

import (
	"errors"
	"syscall"
	"time"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/vfs"
)

// staged is a lock that is prepared, under a name that nobody else knows: a
// directory with the lock file in it. It may be in place already, if a rename
// was carried out; the descriptor follows it.
type staged struct {
	src     *Source
	token   string
	name    string // the lock's name
	content []byte
	parent  *handle // the staging directory
	dir     vfs.Dir
	made    boottime.Instant // before the server gave it its time
}

// stage prepares a lock. Each attempt that is in doubt needs a new one.
func (s *Source) stage(name string, claim multilock.Claim) (*staged, error) {
	for {
		st, err := s.stageOnce(name, claim)
		if errors.Is(err, errStagingGone) {
			continue // each round is somebody's removal of the whole staging directory
		}
		return st, err
	}
}

var errStagingGone = errors.New("the staging directory was removed meanwhile")

func (s *Source) stageOnce(name string, claim multilock.Claim) (*staged, error) {
	token, err := newToken()
	if err != nil {
		return nil, err
	}
	record := multilock.Record{Name: name, Token: token, Claim: claim, Prepared: time.Now()}
	content, err := encodeRecord(s.group, record)
	if err != nil {
		return nil, opError("stage", name, err)
	}
	parent, err := s.staging.use()
	if err != nil {
		return nil, s.stagingError(err)
	}
	st := &staged{src: s, token: token, name: name, content: content, parent: parent, made: boottime.Now()}
	if err := st.prepare(claim); err != nil {
		st.discard()
		if gone(err) {
			s.staging.drop(parent)
			err = errStagingGone
		}
		return nil, opError("stage", name, err)
	}
	return st, nil
}

func (s *Source) stagingError(err error) error {
	if is(err, syscall.ENOTDIR, syscall.ELOOP) {
		return &multilock.InvalidError{What: "base directory", Got: s.base.Path(), Why: "has something called .multilock that is not multilock's own directory; move it away", Err: err}
	}
	return opError("prepare .multilock/staging in the base directory", "", err)
}

// prepare makes the directory, and in it the lock file.
func (st *staged) prepare(claim multilock.Claim) error {
	if err := st.parent.Mkdir(st.token, dirMode); err != nil {
		return err
	}
	dir, err := st.parent.OpenDir(st.token)
	if err != nil {
		return err
	}
	st.dir = dir
	if err := st.src.guard(dir, st.name); err != nil {
		return err
	}
	return st.write(claim)
}

// write fills the lock file. Where others may read it through another kernel, or
// where the lock is to outlive this one (nobody renews it), it is synced, so that
// its content cannot come after its name; elsewhere the mark says that it was not.
func (st *staged) write(claim multilock.Claim) error {
	sync := !st.src.kind.Local || claim.Heartbeat == 0
	mode := uint32(fileMode)
	if !sync {
		mode |= unsyncedMark
	}
	f, err := st.dir.Create(st.name+lockedSuffix, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(st.content)
	if err == nil && sync {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// discard takes the staged lock back, wherever it is by now, and reports whether
// that is certain. The file goes first, through the descriptor: should a rename
// that is in doubt be carried out afterwards, it puts an empty directory in
// place, which is a free lock.
func (st *staged) discard() error {
	var err error
	if st.dir != nil {
		err = st.dir.Unlink(st.name + lockedSuffix)
		if gone(err) {
			err = nil
		}
		if err == nil {
			st.src.unguard(st.dir, st.name)
		}
		_ = st.dir.Close()
	}
	_ = st.parent.Rmdir(st.token)
	st.src.staging.done(st.parent)
	return err
}

// settle ends the staging of a lock that is in place: the directory is
// somebody's lease now.
func (st *staged) settle() {
	_ = st.dir.Close()
	st.src.staging.done(st.parent)
}

// present says whether the staged directory still has its own name.
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
