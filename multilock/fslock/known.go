package fslock

import (
	"context"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

var _ source.Known = (*Source)(nil)

// Known implements source.Known. What is kept of a group, its history first, is never removed
// with the last lock, as the directory with the locks is. Python peers keep nothing.
func (s *Source) Known(context.Context) (bool, error) {
	if s.legacy {
		return true, nil
	}
	kept, err := s.find(vfs.Dir.OpenDir, groupsDir, s.group)
	if gone(err) {
		return false, nil
	}
	if err != nil {
		return false, opError("look for the group's files", "", err)
	}
	return true, kept.Close()
}
