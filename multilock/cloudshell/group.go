package cloudshell

import (
	"context"

	"github.com/multilock/go/multilock/source"
)

var _ source.Group = (*Source)(nil)

// Vacant implements source.Group: one listing, past the server's cache. What a
// crash left behind counts as nothing.
func (s *Source) Vacant(ctx context.Context) (bool, error) {
	names, err := s.Names(ctx)
	return err == nil && len(names) == 0, err
}

// Wake implements source.Group: this source hears nothing.
func (s *Source) Wake() (news <-chan struct{}, stop func()) { return nil, func() {} }

// Tidy implements source.Group. Nothing that a crash leaves keeps a group from
// being vacant: the next holder removes it.
func (s *Source) Tidy(context.Context, string) error { return nil }
