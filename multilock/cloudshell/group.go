package cloudshell

import (
	"context"

	"github.com/multilock/go/multilock"
)

var _ multilock.Group = (*Source)(nil)

// Vacant implements multilock.Group: one listing, past the server's cache. What a
// crash left behind counts as nothing.
func (s *Source) Vacant(ctx context.Context) (bool, error) {
	names, err := s.Names(ctx)
	return err == nil && len(names) == 0, err
}

// Wake implements multilock.Group: this source hears nothing.
func (s *Source) Wake() (news <-chan struct{}, stop func()) { return nil, func() {} }

// Tidy implements multilock.Group. Nothing that a crash leaves keeps a group from
// being vacant: the next holder removes it.
func (s *Source) Tidy(context.Context, string) error { return nil }
