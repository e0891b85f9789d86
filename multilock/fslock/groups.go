package fslock

import (
	"context"

	"github.com/multilock/go/internal/parallel"
	"github.com/multilock/go/multilock/fslock/internal/groupfiles"
	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

var (
	_ source.GroupLister = (*Source)(nil)
	_ source.QueueLister = (*Source)(nil)
)

// Groups implements source.GroupLister: it lists the groups that have files in .multilock/groups. It does
// not list the base, which may contain anything.
func (s *Source) Groups(ctx context.Context) ([]source.GroupSummary, error) {
	names, err := s.namesBelow(groupfiles.Root)
	if err != nil {
		return nil, err
	}
	groups := make([]source.GroupSummary, len(names))
	err = parallel.Do(parallel.Requests, len(names), func(i int) error {
		held, err := s.heldIn(ctx, names[i])
		groups[i] = source.GroupSummary{Name: names[i], Held: held}
		return err
	})
	return groups, err
}

// heldIn counts the entries of a group's directory. A directory that this user may not read counts as 0.
func (s *Source) heldIn(ctx context.Context, group string) (held int, err error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	dir, err := s.files.FindIn(s.base, group, vfs.Dir.OpenDir)
	if gone(err) || forbidden(err) {
		return 0, nil
	}
	if err != nil {
		return 0, opError("look into the lock group "+group, "", err)
	}
	defer dir.Close() //nolint:errcheck // a directory
	err = dir.List(func(string) bool { held++; return true })
	return held, ignoreGone(err)
}

// Queues implements source.QueueLister: each queue is a directory.
func (s *Source) Queues(context.Context) ([]string, error) {
	return s.namesBelow(groupfiles.Root, s.group, queueDir)
}

// namesBelow lists a directory of .multilock; the list is empty if the directory is absent.
func (s *Source) namesBelow(path ...string) ([]string, error) {
	dir, err := s.files.FindWith(vfs.Dir.OpenDir, path...)
	if gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, opError("open multilock's own directory", "", err)
	}
	defer dir.Close() //nolint:errcheck // a directory
	names, err := shareddir.Names(dir.List, func(string) bool { return true })
	if ignoreGone(err) != nil {
		return nil, opError("list multilock's own directory", "", err)
	}
	return names, nil
}
