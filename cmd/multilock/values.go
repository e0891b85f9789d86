package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// duration is a flag's value: a Go duration, a number of seconds, or days ("2d").
type duration struct {
	value time.Duration
	set   bool
}

func (d *duration) Set(text string) error {
	value, err := parseDuration(text)
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

func parseDuration(text string) (time.Duration, error) {
	value, err := time.ParseDuration(text)
	if number, isDays := strings.CutSuffix(text, "d"); isDays {
		value, err = scaled(number, 24*time.Hour)
	} else if err != nil {
		value, err = scaled(text, time.Second)
	}
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is no duration, or too long a one; write 90s, 5m, 2h30m, 1d, or a number of seconds", text)
	case value < 0:
		return 0, errors.New("a duration cannot be negative")
	}
	return value, nil
}

// maxScaled keeps scaled from overflowing: a hundred years.
const maxScaled = 100 * 365 * 24 * time.Hour

func scaled(text string, unit time.Duration) (time.Duration, error) {
	number, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, err
	}
	if !(number*float64(unit) <= float64(maxScaled)) { // also refuses what is not a number
		return 0, errors.New("out of range")
	}
	return time.Duration(number * float64(unit)), nil
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
