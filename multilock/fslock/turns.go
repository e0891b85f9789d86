package fslock

import "github.com/multilock/go/multilock/source"

var _ source.TurnTaking = (*Source)(nil)

// Turns implements source.TurnTaking.
func (s *Source) Turns() *source.Turns { return &s.turns }
