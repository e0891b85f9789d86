package fslock

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/vfs"
)

// lease is a lock that is held: the descriptor of its directory.
type lease struct {
	src    *Source
	record multilock.Record
	group  *handle
	dir    vfs.Dir
	since  boottime.Instant

	drawing   sync.Mutex // one fence number at a time
	recording sync.Mutex // one change of the result at a time
	marking   sync.Mutex // no mark of a job comes between the removals of a release

	mu      sync.Mutex
	users   int // calls that are using dir
	closed  bool
	tried   bool // a removal was answered with an error: it may have been carried out
	marked  bool // there is a job file
	pending bool // a result's file may be in the lock's directory
	missed  bool // the lock file was found missing
	left    sign // of the directory, when the lock file was in it; zero if unknown
	signs   int  // of life, that were given
	settled error
}

func (s *Source) newLease(name string, st *staged, claim multilock.Claim, group *handle, dir vfs.Dir) *lease {
	s.groupDir.keep(group)
	return &lease{
		src: s, group: group, dir: dir,
		record: multilock.Record{Name: name, Token: st.token, Claim: claim},
	}
}

// Record implements multilock.Lease.
func (l *lease) Record() multilock.Record { return l.record }

// Since implements multilock.Lease.
func (l *lease) Since() boottime.Instant { return l.since }

func (l *lease) locked() string { return l.record.Name + lockedSuffix }

func (l *lease) job() string { return l.record.Name + jobSuffix }

func (l *lease) result() string { return l.record.Name + resultSuffix }

func (l *lease) forgot() string { return l.record.Name + forgotSuffix }

// Renew gives a sign of life through the descriptor and makes sure that the lock
// file is in the directory. The touch alone would prove nothing: it also succeeds on
// a directory that a breaker has emptied.
func (l *lease) Renew(context.Context) error {
	if err := l.enter(); err != nil {
		return err
	}
	defer l.leave()
	return l.renew()
}

func (l *lease) renew() error {
	untouched, err := l.untouched()
	if err != nil {
		return l.explain("look at the lock's directory", err)
	}
	if err := l.dir.Touch(); err != nil {
		return l.explain("touch", err)
	}
	left := l.leaves()
	if !untouched || left == (sign{}) {
		if err := l.present(); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.signs++; l.signs%looksEvery == 0 {
		left = sign{}
	}
	l.left = left
	return nil
}

// looksEvery is how often a sign of life comes with a look for the lock file in any
// case, so that what the directory's times did not tell comes to light in the end.
const looksEvery = 8

// untouched says whether the directory is as this lease's last sign of life left it:
// then nothing in it was added or removed since, and the lock file is still there. To
// look it up by name costs an NFS client two requests more, for it asks for its
// permissions on a directory that the touch has changed.
func (l *lease) untouched() (bool, error) {
	l.mu.Lock()
	left := l.left
	l.mu.Unlock()
	if left == (sign{}) {
		return false, nil
	}
	info, err := l.dir.Stat()
	return err == nil && info.Links > 0 && signOf(info) == left, err
}

// leaves is how a touch leaves the directory, by the times in the server's reply; zero
// if it is gone, and where it is not known to be NFS: there a look by name costs no more,
// or the times may not tell what others do.
//
// Had a breaker removed the lock file between untouched and this, the times would be his,
// and would not tell. Nobody has the lock then: whoever takes it replaces the directory,
// and the next sign of life finds it gone.
func (l *lease) leaves() sign {
	if !l.src.kind.NFS {
		return sign{}
	}
	info, err := l.dir.StatCached()
	if err != nil || info.Links == 0 {
		return sign{}
	}
	return signOf(info)
}

// present looks the lock file up by name, as the server has it now.
func (l *lease) present() error {
	info, err := l.dir.StatName(l.locked())
	if err == nil && info.Links == 0 {
		return l.lost("the lock file was removed")
	}
	return l.explain("look the lock file up", err)
}

// explain turns what a call on the lock directory answered into what it means.
func (l *lease) explain(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case gone(err):
		return l.lost("its file is not there any more: the lock was broken or removed")
	}
	return opError(op, l.record.Name, err)
}

func (l *lease) lost(why string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.missed = true
	return &multilock.LostError{Name: l.record.Name, Silence: l.since.Elapsed(), Err: errors.New(why)}
}

// Release removes what is beside the lock file, that file, and the empty
// directory. The lock file decides; the directory is removed by path, which can
// only succeed on an empty one.
func (l *lease) Release(context.Context) error {
	l.marking.Lock()
	defer l.marking.Unlock()
	if err := l.enter(); err != nil {
		return err
	}
	defer l.leave()
	if err := l.clearBesides(); err != nil {
		return err
	}
	l.mu.Lock()
	tried, missed := l.tried, l.missed
	l.mu.Unlock()
	err := l.dir.Unlink(l.locked())
	switch {
	case err == nil, gone(err) && (tried || !missed && l.untaken()):
	case gone(err):
		return l.settle(l.explain("release", err))
	default:
		l.mu.Lock()
		l.tried = true
		l.mu.Unlock()
		return opError("release", l.record.Name, err)
	}
	l.src.removeEmpty(l.group, l.dir, l.record.Name)
	return l.settle(nil)
}

// untaken says whether the lock's directory is still there, without the lock
// file. Who takes the lock replaces it, and who breaks the lock removes it: so
// nobody has had the lock since, and the lock file was most likely removed by
// this very request, sent once more after its reply was lost.
func (l *lease) untaken() bool {
	info, err := l.dir.Stat()
	if err != nil || info.Links == 0 {
		return false
	}
	_, err = l.dir.StatName(l.locked())
	return gone(err)
}

// clearBesides removes the files beside the lock file that this lease may have left.
func (l *lease) clearBesides() error {
	l.mu.Lock()
	marked, pending := l.marked, l.pending
	l.mu.Unlock()
	var left []string
	if marked {
		left = append(left, l.job())
	}
	if pending {
		left = append(left, l.result(), l.forgot())
	}
	for _, entry := range left {
		if err := l.dir.Unlink(entry); err != nil && !gone(err) {
			return opError("remove "+entry, l.record.Name, err)
		}
	}
	return nil
}

// settle ends the lease.
func (l *lease) settle(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed, l.settled = true, err
	return err
}

// Close implements multilock.Lease.
func (l *lease) Close() error {
	if err := l.enter(); err != nil {
		return nil // closed before
	}
	defer l.leave()
	return l.settle(nil)
}

// MarkJob writes the job's process group into the lock directory, in the place
// of the one before, if there is one.
func (l *lease) MarkJob(_ context.Context, job process.Group) error {
	l.marking.Lock()
	defer l.marking.Unlock()
	if err := l.enter(); err != nil {
		return err
	}
	defer l.leave()
	none := job == process.Group{}
	l.mu.Lock()
	again := l.marked
	l.marked = again || !none
	l.mu.Unlock()
	if again {
		if err := l.dir.Unlink(l.job()); err != nil && !gone(err) {
			return opError("mark the job", l.record.Name, err)
		}
	}
	if none {
		return nil
	}
	return l.explain("mark the job", l.writeMark(job))
}

func (l *lease) writeMark(job process.Group) error {
	data, err := json.Marshal(job)
	if err != nil {
		return err
	}
	f, err := l.dir.Create(l.job(), fileMode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// enter begins a use of the descriptor, which is closed when the lease is settled
// and its last user has left. A use may hang while others go on.
func (l *lease) enter() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		if l.settled != nil {
			return l.settled
		}
		return multilock.ErrReleased
	}
	l.users++
	return nil
}

func (l *lease) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.users--
	if l.closed && l.users == 0 && l.dir != nil {
		_ = l.dir.Close()
		l.src.groupDir.done(l.group)
		l.dir = nil
	}
}
