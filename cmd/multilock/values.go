package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/multilock/go/internal/span"
)

// duration is a flag's value: a Go duration, a number of seconds, or days ("2d").
type duration struct {
	value time.Duration
	set   bool
}

func (d *duration) Set(text string) error {
	value, err := span.Parse(text)
	if err != nil {
		return err
	}
	d.value, d.set = value, true
	return nil
}

func (d *duration) String() string {
	if d == nil || !d.set {
		return ""
	}
	return d.value.String()
}

// waitLimit is the value of --wait: a duration, or "forever".
type waitLimit struct {
	duration
	forever bool
}

func (w *waitLimit) Set(text string) error {
	if text == "forever" {
		w.forever, w.set = true, true
		return nil
	}
	return w.duration.Set(text)
}

// waits says whether to wait at all.
func (w *waitLimit) waits() bool { return w.forever || w.value > 0 }

// after is what is left of the limit when so much time is over.
func (w waitLimit) after(over time.Duration) waitLimit {
	w.value = max(w.value-over, 0)
	return w
}

// errWaitOver is the end of a wait that was limited.
var errWaitOver = &codedError{Code: exitTimeLimit, Text: "the time to wait is over"}

// limited ends a context when the time to wait is over.
func (w *waitLimit) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if w.forever {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, w.value, errWaitOver)
}

// number is a flag's value: a whole number.
type number struct {
	value int
	set   bool
}

func (n *number) Set(text string) error {
	value, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("%q is not a number", text)
	}
	n.value, n.set = value, true
	return nil
}

// String is what the help text shows as the default: those are in the usage texts.
func (n *number) String() string {
	if n == nil || !n.set {
		return ""
	}
	return strconv.Itoa(n.value)
}
