package fslock

import (
	"path/filepath"

	"github.com/multilock/go/multilock/fslock/internal/groupfiles"
	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

var _ source.Queueing = (*Source)(nil)

// Queue implements source.Queueing: tickets are the locks of a group of their own, which is
// called like the lock and lies in BASE/.multilock/groups/GROUP/queue. They are staged,
// placed, renewed, judged and broken like all locks, but no history tells of them.
func (s *Source) Queue(name string) (source.Queue, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	q := &Source{base: s.base, files: groupfiles.Files{Base: s.base, Group: name}, group: name, queued: s.group, self: s.self, user: s.user}
	q.above = shareddir.NewDir(func(open shareddir.Opener) (vfs.Dir, error) {
		return s.files.FindWith(open, groupfiles.Root, s.group, queueDir)
	})
	q.makeAbove = func() error { // by a ticket; a look makes nothing
		dir, err := s.files.Make(queueDir, shareddir.Afresh)
		if err != nil {
			return err
		}
		return dir.Close()
	}
	q.groupDir = shareddir.NewDir(q.openGroup)
	return queue{q, q}, nil
}

// queue is a source of tickets, of which only what a queue needs is to be had.
type queue struct {
	source.Group
	src *Source
}

// Left implements source.Queue. Where others may use the filesystem there would be news of
// some tickets only.
func (q queue) Left(ticket string) (news <-chan struct{}, stop func()) {
	if !q.src.base.Kind.Local {
		return nil, func() {}
	}
	return q.src.newsOf(ticket)
}

// Close implements source.Queue. The base is the lock's.
func (q queue) Close() error {
	q.src.notifier.close()
	q.src.groupDir.Close()
	q.src.above.Close()
	return nil
}

// called is what the user knows the group by.
func (s *Source) called() (what, name string) {
	if s.above == nil {
		return "lock group", s.group
	}
	return "queue", filepath.Join(s.base.Path(), shareddir.PrivateDir, groupfiles.Root, s.queued, queueDir, s.group)
}

// inParent does something in the directory that the group's is in: the base, or for a queue
// the one that all queues of the group are in.
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
