package fslock

import (
	"errors"
	"sync"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// lease is a lock that is held: the descriptor of its directory.
type lease struct {
	src    *Source
	record source.Record
	group  *shareddir.Handle
	dir    vfs.Dir
	since  boottime.Instant

	file    fileIdentity // of the lock file that this lease wrote
	content []byte       // of the lock file

	drawing   sync.Mutex // one fence number at a time
	recording sync.Mutex // one change of the result at a time
	marking   sync.Mutex // no mark of a job comes between the removals of a release

	mu      sync.Mutex
	users   int // calls that are using dir
	closed  bool
	shut    bool  // dir is closed
	tried   bool  // a removal failed: it may have been carried out all the same
	proven  bool  // Release has seen the lock file in its place
	marked  bool  // there is a job file
	renewed bool  // there may be a new job file
	pending bool  // a result's file may be in the lock's directory
	moved   bool  // a file moved there from the results may be in the lock's directory
	loss    error // why the lock is not held any more, once that is proven
	left    sign  // of the directory, as the last heartbeat left it; zero if unknown
	found   sign  // of the directory, before the read-back found the lock file in it; zero if unknown
	signs   int   // heartbeats sent
	settled error
}

func (s *Source) newLease(name string, st *staged, claim source.Claim, group *shareddir.Handle, dir vfs.Dir) *lease {
	s.groupDir.Keep(group)
	return &lease{
		src: s, group: group, dir: dir, file: st.file, content: st.content,
		record: source.Record{Name: name, Token: st.token, Claim: claim},
	}
}

// Record implements source.Lease.
func (l *lease) Record() source.Record { return l.record }

// Since implements source.Lease.
func (l *lease) Since() boottime.Instant { return l.since }

// Local implements source.Local.
func (l *lease) Local() bool { return l.src.Local() }

func (l *lease) locked() string { return l.record.Name + lockedSuffix }

func (l *lease) job() string { return l.record.Name + jobSuffix }

func (l *lease) newJob() string { return l.record.Name + newJobSuffix }

func (l *lease) result() string { return l.record.Name + resultSuffix }

func (l *lease) forgot() string { return l.record.Name + forgotSuffix }

// explain interprets the error of a call on the lock directory.
func (l *lease) explain(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case gone(err):
		return l.lost("its file is gone: the lock was broken or removed")
	}
	return opError(op, l.record.Name, err)
}

func (l *lease) lost(why string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loss = &source.LostError{Name: l.record.Name, Silence: l.src.clock.Elapsed(l.since), Err: errors.New(why)}
	return l.loss
}

// settle ends the lease.
func (l *lease) settle(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed, l.settled = true, err
	return err
}

// Close implements source.Lease.
func (l *lease) Close() error {
	if err := l.enter(); err != nil {
		return nil // closed before
	}
	defer l.leave()
	return l.settle(nil)
}

// enter begins a use of the descriptor, which is closed when the lease has ended and its last user has
// left. A call that hangs does not block the others.
func (l *lease) enter() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		if l.settled != nil {
			return l.settled
		}
		return source.ErrReleased
	}
	l.users++
	return nil
}

// use is enter for calls that only a holder may make.
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
		l.shutDir()
		l.src.groupDir.Done(l.group)
		l.dir = nil
	}
}

// shutDir closes the directory once, even under calls that are still running.
func (l *lease) shutDir() {
	if !l.shut {
		_ = l.dir.Close()
		l.shut = true
	}
}
