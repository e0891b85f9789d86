package fslock

import (
	"path/filepath"

	"github.com/multilock/go/multilock/fslock/internal/groupfiles"
	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

var _ source.Queueing = (*Source)(nil)

// Queue implements source.Queueing: tickets are the locks of a separate group, which has the lock's name
// and is in BASE/.multilock/groups/GROUP/queue. They are staged, placed, renewed, judged and broken like
// all locks, but do not appear in the history.
func (s *Source) Queue(name string) (source.Queue, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	q := &Source{base: s.base, files: groupfiles.Files{Base: s.base, Group: name}, group: name, queued: s.group, self: s.self, user: s.user}
	q.above = shareddir.NewDir(func(open shareddir.Opener) (vfs.Dir, error) {
		return s.files.FindWith(open, groupfiles.Root, s.group, queueDir)
	})
	q.makeAbove = func() error { // called for a ticket; a look creates nothing
		dir, err := s.files.Make(queueDir, shareddir.Afresh)
		if err != nil {
			return err
		}
		return dir.Close()
	}
	q.groupDir = shareddir.NewDir(q.openGroup)
	return queue{q, q}, nil
}

// queue is a source of tickets that exposes only what a queue needs.
type queue struct {
	source.Group
	src *Source
}

// Left implements source.Queue. If other hosts may use the filesystem, notifications would cover only some
// of the tickets, so there are none.
func (q queue) Left(ticket string) (news <-chan struct{}, stop func()) {
	if !q.src.base.Kind.Local {
		return nil, func() {}
	}
	return q.src.newsOf(ticket)
}

// Close implements source.Queue. The base belongs to the lock's source.
func (q queue) Close() error {
	q.src.notifier.close()
	q.src.groupDir.Close()
	q.src.above.Close()
	return nil
}

// called is the name by which the user knows the group.
func (s *Source) called() (what, name string) {
	if s.above == nil {
		return "lock group", s.group
	}
	return "queue", filepath.Join(s.base.Path(), shareddir.PrivateDir, groupfiles.Root, s.queued, queueDir, s.group)
}

// inParent calls do with the parent of the group's directory: the base, or for a queue the directory of the
// group's queues.
func (s *Source) inParent(do func(parent vfs.Dir) error) error {
	if s.above == nil {
		return do(s.base)
	}
	parent, err := s.above.Use()
	if err != nil {
		return err
	}
	defer s.above.Done(parent)
	err = do(parent)
	if gone(err) {
		if info, failed := parent.Stat(); failed != nil || info.Links == 0 {
			s.above.Drop(parent)
		}
	}
	return err
}
