package cooklock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// directoryRegister is a chain of epochs of which one is public at a time, see
// docs/cooking.md. A swap prepares a whole epoch, with its own value in it, under
// a name that nobody else knows, moves it into live of the present epoch N, and
// from there to N/next. The second rename is the swap: it fails if there is a next
// one already, or if live was emptied because there had been one.
type directoryRegister struct {
	place *Directory
	name  string
}

// Peek implements Register. It looks whether a swap has taken effect in the last
// epoch, too, which has not become public yet.
func (r *directoryRegister) Peek(context.Context) ([]byte, uint64, error) {
	at, err := r.place.findRoot(r.name)
	if vfs.Gone(err) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fileError("peek", r.name, err)
	}
	defer at.close()
	e, err := at.newest()
	if err != nil {
		return nil, 0, fileError("peek", r.name, err)
	}
	defer e.Close() //nolint:errcheck // a directory
	if after, err := at.successor(e); err == nil {
		return after.value, e.number + 1, nil
	}
	return e.value, e.number, nil
}

// Swap implements Register.
func (r *directoryRegister) Swap(ctx context.Context, v []byte) ([]byte, uint64, error) {
	if len(v) == 0 || len(v) > MaxValue {
		return nil, 0, &source.InvalidError{What: "value", Got: fmt.Sprintf("%d bytes", len(v)), Why: fmt.Sprintf("must have 1 to %d bytes", MaxValue)}
	}
	at, err := r.place.makeRoot(r.name)
	if err != nil {
		return nil, 0, fileError("open the register", r.name, err)
	}
	defer at.close()
	for range maxRounds {
		if err := context.Cause(ctx); err != nil {
			return nil, 0, err
		}
		s := &swap{at: at, value: bytes.Clone(v)}
		done, err := s.attempt()
		if err != nil {
			return nil, 0, fileError("swap", r.name, err)
		}
		if done {
			return s.old.value, s.old.number + 1, nil
		}
	}
	return nil, 0, fileError("swap", r.name, errors.New("others were quicker every time; fewer should compete for this lock"))
}

// swap is one attempt, under a token of its own.
type swap struct {
	at    *root
	value []byte
	token string
	old   *epoch
	live  vfs.Dir
}

// attempt tries once in the newest epoch. Not done and no error: it was not the
// newest any more. After ErrUnsure the swap may have taken effect.
func (s *swap) attempt() (done bool, err error) {
	if s.old, err = s.at.newest(); err != nil {
		return false, err
	}
	defer s.old.Close() //nolint:errcheck // a directory
	s.live, err = s.at.place.fresh(s.old.Dir, liveDir)
	if vfs.Gone(err) {
		return false, s.at.help(s.old)
	}
	if err != nil {
		return false, err
	}
	defer s.live.Close() //nolint:errcheck // a directory
	switch err := s.enter(); {
	case err == nil:
		return s.place()
	case vfs.Gone(err):
		return false, s.at.help(s.old)
	case vfs.NotEmpty(err):
		return false, nil // a name that nobody else knows exists: the request was sent twice
	default:
		return false, err
	}
}

// enter prepares the value and moves it into live of the epoch. It is not prepared
// there: a process that stood still with the file open would, on NFS, keep others
// on its host from emptying live.
func (s *swap) enter() (err error) {
	if s.token, err = newToken(); err != nil {
		return err
	}
	err = writeNode(s.at.staging, s.token, s.old.after(s.token, s.value))
	if err == nil {
		err = s.at.staging.Rename(s.token, s.live, s.token)
	}
	if err != nil {
		s.discard()
	}
	return err
}

// place moves the value to next, and finds out whether that was done.
func (s *swap) place() (done bool, err error) {
	moved := s.live.Rename(s.token, s.old.Dir, nextDir)
	if moved == nil && s.at.place.kind.Local {
		return true, s.confirm()
	}
	switch mine, err := s.verify(); {
	case err != nil:
		return false, errors.Join(source.ErrUnsure, moved, err)
	case mine:
		return true, s.confirm()
	}
	s.discard()
	if moved == nil || vfs.NotEmpty(moved) || vfs.Gone(moved) {
		return false, s.at.help(s.old)
	}
	return false, moved
}

// verify says whether the swap has taken effect. An error of the rename says
// nothing: its reply may have been lost, and the request repeated. If neither this
// value nor another one follows the epoch's, this one is taken back: once that has
// succeeded it is not there and never will be. The error says that it cannot be
// learned.
func (s *swap) verify() (mine bool, err error) {
	token, err := s.follower()
	if err == nil {
		return token == s.token, nil
	}
	if !vfs.Gone(err) {
		return false, err
	}
	taken := moveAway(s.live, s.token, s.at.staging)
	if taken == nil {
		return false, nil
	}
	if token, err = s.follower(); err == nil {
		return token == s.token, nil
	}
	return false, errors.Join(taken, err)
}

// follower is the token of the swap that took effect after the epoch's own. It may
// have been followed by others since, which remember it.
func (s *swap) follower() (string, error) {
	n, err := s.at.successor(s.old)
	if !vfs.Gone(err) {
		return n.token, err
	}
	e, err := s.at.newest()
	if err != nil {
		return "", err
	}
	defer e.Close() //nolint:errcheck // a directory
	number := s.old.number + 1
	if e.number < number {
		return "", syscall.ENOENT
	}
	if token := e.history(e.number - number); token != "" {
		return token, nil
	}
	return "", errForgotten
}

// errForgotten says that so much has happened since that nobody can tell any more.
var errForgotten = errors.New("too many others have swapped since")

// confirm makes the swap outlast a power failure, and then the epoch public. Only
// the first has to be: whoever comes next does the second, too.
func (s *swap) confirm() error {
	if s.at.place.kind.Local {
		if err := s.old.Sync(); err != nil {
			return errors.Join(source.ErrUnsure, err)
		}
	}
	if s.at.help(s.old) == nil {
		s.at.tidy()
	}
	return nil
}

// discard removes a value that is not in place, from wherever it got to, so that it
// never will be.
func (s *swap) discard() {
	for _, parent := range []vfs.Dir{s.live, s.at.staging} {
		_ = moveAway(parent, s.token, s.at.staging)
	}
}
