package fslock

import (
	"context"

	"github.com/multilock/go/multilock/source"
)

var _ source.Known = (*Source)(nil)

// Known implements source.Known. What is kept of a group, its history first, is never removed
// with the last lock, as the directory with the locks is. Python peers keep nothing.
func (s *Source) Known(context.Context) (bool, error) {
	if s.legacy {
		return true, nil
	}
	kept, err := s.files.Find()
	if gone(err) {
		return false, nil
	}
	if err != nil {
		return false, opError("look for the group's files", "", err)
	}
	return true, kept.Close()
}
