//go:build no_ping

package ping

import (
	"context"
	"errors"
)

// Check is a stub: this program is built without pings.
type Check struct{}

// New returns an error, because this program is built without pings.
func New(text string) (*Check, error) {
	if _, err := parse(text); err != nil {
		return nil, err
	}
	return nil, errors.New("HTTP is not built into this program; use multilock-full")
}

// Start does nothing.
func (c *Check) Start(context.Context) {}

// End does nothing.
func (c *Check) End(context.Context, End) error { return nil }
