package main

import (
	"strconv"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/multilock/source"
)

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func pid(n int) string {
	if n <= 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

// ago writes a number of seconds of a view; "?" if it is unknown.
func ago(s *float64) string {
	if s == nil {
		return console.Short(source.Unknown)
	}
	return console.Short(time.Duration(*s * float64(time.Second)))
}

func ellipsis(s string, limit int) string {
	runes := []rune(s)
	if len(runes) <= limit {
		return s
	}
	return string(runes[:limit-1]) + "…"
}
