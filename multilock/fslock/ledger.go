package fslock

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/multilock/go/multilock/fslock/internal/groupfiles"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// The last result of a name is the file BASE/.multilock/groups/GROUP/done/NAME.
//
// It gets there by a rename from the lock's own directory, through the descriptor that the holder keeps. So
// it can only get there while that directory exists: no process can acquire the name before that directory
// is empty, and then there is nothing to rename. A result is removed the same way, by a rename into that
// directory.

var _ source.Committer = (*lease)(nil)

// Commit implements source.Committer.
func (l *lease) Commit(_ context.Context, r source.Result) error {
	content, err := encodeResult(l.src.group, r)
	if err != nil {
		return opError("commit the result", l.record.Name, err)
	}
	return l.recordWith("commit the result", func() error { return l.commit(content) })
}

// recordWith changes the result, one call at a time: of two concurrent calls, each would take the other's
// file for its own leftover.
func (l *lease) recordWith(op string, change func() error) error {
	if err := l.use(); err != nil {
		return err
	}
	defer l.leave()
	l.recording.Lock()
	defer l.recording.Unlock()
	return l.src.amongResults(op, l.record.Name, change)
}

// amongResults retries as long as a directory changes under a step, or seems to: an NFS client that caches
// a name as absent answers from its cache, even right after its server has reported that the name exists.
// So the cache is refreshed before the next round.
func (s *Source) amongResults(op, name string, step func() error) error {
	return groupfiles.InRounds(op, name, func() error {
		err := step()
		if errors.Is(err, groupfiles.ErrAgain) {
			s.recallResults()
		}
		return err
	})
}

// recallResults makes an NFS client drop outdated names of the results from its cache. If that fails, the
// next round hits the cause.
func (s *Source) recallResults() {
	if done, err := s.results.Use(); err == nil {
		_ = s.files.Refresh(done)
		s.results.Done(done)
	}
}

func (l *lease) setPending(pending bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = pending
}

func (l *lease) setMoved(moved bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.moved = moved
}

// assessment interprets the error of a call on the lock's directory: the lock file decides whether the lock is
// lost.
func (l *lease) assessment(op string, err error) error {
	if gone(err) {
		if err := l.renew(); err != nil {
			return err
		}
	}
	return opError(op, l.record.Name, err)
}

func (l *lease) unsure(op string, err error) error {
	return errors.Join(source.ErrUnsure, opError(op, l.record.Name, err))
}

// Forget implements source.Committer. The result is moved into the lock's directory, which only works while
// that exists, and removed there.
func (l *lease) Forget(context.Context) error {
	return l.recordWith("delete the result", l.forget)
}

func (l *lease) forget() error {
	done, err := l.src.makeResults()
	if err != nil {
		return resultsError(l.record.Name, err)
	}
	defer l.src.results.Done(done)
	switch err := l.probe(done); {
	case errors.Is(err, source.ErrNoResult):
		return l.renew() // if we lost the lock meanwhile, the answer is another holder's
	case errors.Is(err, errOccupied):
		return occupied(done, l.record.Name)
	case err != nil:
		return err
	}
	l.setMoved(true)
	return l.forgotten(done.Rename(l.record.Name, l.dir, l.forgot()))
}

// forgotten removes the moved result. If that succeeds, the result was moved; if there is nothing, the next
// round checks whether a result exists at all.
func (l *lease) forgotten(renamed error) error {
	removed := removeEntry(l.dir, l.forgot())
	switch {
	case removed == nil:
		l.setMoved(false)
		return nil
	case inDoubt(renamed), !gone(removed):
		return l.unsure("learn whether the result was removed", errors.Join(renamed, removed))
	case renamed != nil && !gone(renamed):
		return opError("delete the result", l.record.Name, renamed)
	}
	if err := l.renew(); err != nil {
		return err
	}
	return groupfiles.ErrAgain
}

// resultsError is for a directory of results that cannot be opened or made.
func resultsError(name string, err error) error {
	if gone(err) {
		return groupfiles.ErrAgain // another process has just removed it
	}
	return opError("open the results", name, err)
}

// occupied reports that a user's directory is where the result belongs.
func occupied(done vfs.Dir, name string) error {
	return &source.InvalidError{
		What: "lock name", Got: name, Err: syscall.ENOTEMPTY,
		Why: fmt.Sprintf("%s/%s is a directory with files in it, where the result of its job belongs; move it away", done.Path(), name),
	}
}
