package fslock

import (
	"context"
	"fmt"
	"syscall"

	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
)

var _ source.Changes = (*Source)(nil)

// Revision implements source.Changes: every commit renames a file into the
// directory of the results, which changes that directory's times, by the
// server's clock. It is "" as long as there is no such directory.
func (s *Source) Revision(context.Context) (string, error) {
	for range shareddir.Rounds() {
		revision, err := s.revision()
		if !gone(err) {
			return revision, err
		}
	}
	return "", nil // removed again and again: there are none
}

func (s *Source) revision() (string, error) {
	results, err := s.results.Use()
	if gone(err) {
		return "", nil
	}
	if err != nil {
		return "", opError("open the results", "", err)
	}
	defer s.results.Done(results)
	info, err := results.Stat()
	if gone(err) || (err == nil && info.Links == 0) {
		s.results.Drop(results)
		return "", syscall.ESTALE
	}
	if err != nil {
		return "", opError("look at the results", "", err)
	}
	return fmt.Sprintf("%d %d %d", info.Inode, info.ModTime.UnixNano(), info.ChangeTime.UnixNano()), nil
}
