package fslock

import (
	"context"
	"errors"
	"sync"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/boottime"
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
	tried   bool  // a removal was answered with an error: it may have been carried out
	marked  bool  // there is a job file
	pending bool  // a result's file may be in the lock's directory
	loss    error // why it is not held any more, once that is proven
	left    sign  // of the directory, when the lock file was in it; zero if unknown
	signs   int   // of life, that were given
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
	l.loss = &multilock.LostError{Name: l.record.Name, Silence: l.since.Elapsed(), Err: errors.New(why)}
	return l.loss
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
	tried, loss := l.tried, l.loss
	l.mu.Unlock()
	err := l.dir.Unlink(l.locked())
	switch {
	case err == nil && loss != nil:
		return l.settle(loss) // the directory is elsewhere, and its name another's
	case err == nil, gone(err) && (tried || loss == nil && l.untaken()):
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

// use is enter for what only the holder may do.
func (l *lease) use() error {
	if err := l.enter(); err != nil {
		return err
	}
	l.mu.Lock()
	loss := l.loss
	l.mu.Unlock()
	if loss != nil {
		l.leave()
	}
	return loss
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
