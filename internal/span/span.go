// Package span parses and formats durations as people write them on a command line.
package span

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Day is a day of 24 hours.
const Day = 24 * time.Hour

// Parse parses a Go duration, a number of seconds, or days ("2d"). It is never negative.
func Parse(text string) (time.Duration, error) {
	value, err := time.ParseDuration(text)
	if number, isDays := strings.CutSuffix(text, "d"); isDays {
		value, err = scaled(number, Day)
	} else if err != nil {
		value, err = scaled(text, time.Second)
	}
	switch {
	case err != nil:
		return 0, fmt.Errorf("invalid duration %q: use 90s, 5m, 2h30m, 1d, or a number of seconds", text)
	case value < 0:
		return 0, errors.New("a duration cannot be negative")
	}
	return value, nil
}

// maxScaled prevents an overflow in scaled: a hundred years.
const maxScaled = 100 * 365 * Day

func scaled(text string, unit time.Duration) (time.Duration, error) {
	number, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, err
	}
	if !(number*float64(unit) <= float64(maxScaled)) { // also rejects NaN
		return 0, errors.New("out of range")
	}
	return time.Duration(number * float64(unit)), nil
}

// Format formats a duration in the format of Parse, without the units that are 0: 1d, 36h, 7h30m,
// 1m30s.
func Format(d time.Duration) string {
	if d != 0 && d%Day == 0 {
		return strconv.FormatInt(int64(d/Day), 10) + "d"
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
