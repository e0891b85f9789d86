//go:build no_ping

package ping

import (
	"context"
	"errors"
)

// Check is never there in this program.
type Check struct{}

// New says that this program has none.
func New(text string) (*Check, error) {
	if _, err := parse(text); err != nil {
		return nil, err
	}
	return nil, errors.New("this multilock has no HTTP; call multilock-full instead, which has")
}

// Start does nothing.
func (c *Check) Start(context.Context) {}

// End does nothing.
func (c *Check) End(context.Context, End) error { return nil }
