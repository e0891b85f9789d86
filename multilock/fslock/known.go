package fslock

import (
	"context"

	"github.com/multilock/go/multilock/source"
)

var _ source.Known = (*Source)(nil)

// Known implements source.Known. The directory with the locks is removed with the last lock, but the
// group's files, such as its history, stay. Python peers leave no files, so with them every group counts as
// known.
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
