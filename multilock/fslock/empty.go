package fslock

import (
	"context"
	"errors"
	"syscall"

	"github.com/multilock/go/multilock/fslock/internal/groupfiles"
	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
)

var _ source.Group = (*Source)(nil)

// Empty implements source.Group: it removes the group's directory, which only succeeds if it is empty.
// That is one request that no cache can answer, and the next acquisition makes the directory again.
//
// If the user may not remove it, or may not write at all, it is listed instead: see listedEmpty.
func (s *Source) Empty(ctx context.Context) (bool, error) {
	for range shareddir.Rounds() {
		empty, err := s.vacate(ctx)
		if !errors.Is(err, groupfiles.ErrAgain) {
			return empty, err
		}
	}
	return false, opError("ask whether the lock group is empty", "", errors.New("it does not hold still"))
}

func (s *Source) vacate(ctx context.Context) (bool, error) {
	switch err := s.removeGroupDir(); {
	case err == nil:
		s.groupDir.Close() // the open descriptor is not of the group any more
		return true, nil
	case notEmpty(err):
		return false, nil
	case is(err, syscall.ENOENT) && s.base.Absent():
		return true, nil // a look does not create the base
	case is(err, syscall.ENOENT):
		return s.confirmAbsence(ctx)
	case forbidden(err), is(err, syscall.EROFS):
		return s.listedEmpty(ctx)
	default:
		return false, s.emptyError(err)
	}
}

// confirmAbsence asks the server whether the group is absent. An NFS client may have cached that the name
// is absent, and answers an rmdir from its cache, but it always sends a mkdir. If the mkdir succeeds, the
// group was absent; the rmdir cleans up, and its answer is newer.
func (s *Source) confirmAbsence(ctx context.Context) (bool, error) {
	switch err := s.makeGroupDir(); {
	case is(err, syscall.EEXIST):
		return false, groupfiles.ErrAgain // the cached answer was wrong, and is corrected now
	case forbidden(err), is(err, syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT):
		return s.listedEmpty(ctx)
	case err != nil:
		return false, s.emptyError(err)
	}
	switch err := s.removeGroupDir(); {
	case err == nil, is(err, syscall.ENOENT): // another barrier also removes an empty group
		s.groupDir.Close()
		return true, nil
	case notEmpty(err):
		return false, nil
	case forbidden(err):
		return s.listedEmpty(ctx)
	default:
		return false, s.emptyError(err)
	}
}

// listedEmpty works with read permission alone. Names fetches the directory's attributes first, which makes
// an NFS client drop an outdated listing. An empty listing is the reply to one request and shows one
// instant; only a longer listing can miss a lock between its requests.
func (s *Source) listedEmpty(ctx context.Context) (bool, error) {
	names, err := s.Names(ctx)
	return err == nil && len(names) == 0, err
}

// Tidy implements source.Group: a crash between the two removals of a release leaves the lock's empty
// directory, which rmdir removes only while it is empty. Where Python peers contend, an empty directory may
// be a lock that is being acquired, and is broken by age instead.
func (s *Source) Tidy(_ context.Context, name string) error {
	if s.legacy {
		return nil
	}
	group, err := s.groupDir.Present()
	if err != nil {
		return ignoreGone(err)
	}
	defer s.groupDir.Done(group)
	err = group.Rmdir(name)
	if err == nil || gone(err) || notEmpty(err) {
		return nil
	}
	return opError("remove the empty directory of a lock", name, err)
}

func (s *Source) emptyError(err error) error {
	if is(err, syscall.ENOTDIR, syscall.ELOOP) {
		return s.groupError(err)
	}
	return opError("ask whether the lock group is empty", "", err)
}

// anyLock subscribes to notifications of all locks. No lock can have that name.
const anyLock = ""

// Wake implements source.Group.
func (s *Source) Wake() (news <-chan struct{}, stop func()) { return s.newsOf(anyLock) }

// newsOf subscribes to notifications of a lock.
func (s *Source) newsOf(name string) (news <-chan struct{}, stop func()) {
	group, err := s.groupDir.Present()
	if err != nil {
		return nil, func() {}
	}
	defer s.groupDir.Done(group)
	w := s.notifier.subscribe(group, name)
	return w.channel(), w.close
}
