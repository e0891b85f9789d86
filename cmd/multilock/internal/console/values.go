package console

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/multilock/go/internal/span"
)

// Duration is a flag's value: a Go duration, a number of seconds, or days ("2d").
type Duration struct {
	Value time.Duration
	Given bool
}

// Set parses the value.
func (d *Duration) Set(text string) error {
	value, err := span.Parse(text)
	if err != nil {
		return err
	}
	d.Value, d.Given = value, true
	return nil
}

// Preset sets the default.
func (d *Duration) Preset(text string) {
	_ = d.Set(text) // the default is valid
	d.Given = false
}

// WaitLimit is the value of --wait: a duration, or "forever".
type WaitLimit struct {
	Duration
	Forever bool
}

// Set parses the value.
func (w *WaitLimit) Set(text string) error {
	if text == "forever" {
		w.Forever, w.Given = true, true
		return nil
	}
	return w.Duration.Set(text)
}

// Waits reports whether to wait at all.
func (w *WaitLimit) Waits() bool { return w.Forever || w.Value > 0 }

// After returns the rest of the limit after a time.
func (w WaitLimit) After(over time.Duration) WaitLimit {
	w.Value = max(w.Value-over, 0)
	return w
}

// ErrWaitOver is the cause of a wait that timed out.
var ErrWaitOver = &CodedError{Code: ExitTimeLimit, Text: "timed out waiting"}

// Limited returns a context that ends when the wait times out.
func (w *WaitLimit) Limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if w.Forever {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, w.Value, ErrWaitOver)
}

// Number is a flag's value: a whole number.
type Number struct {
	Value int
	Given bool
}

// Set parses the value.
func (n *Number) Set(text string) error {
	value, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("%q is not a number", text)
	}
	n.Value, n.Given = value, true
	return nil
}

// Preset sets the default.
func (n *Number) Preset(text string) {
	_ = n.Set(text) // the default is valid
	n.Given = false
}
