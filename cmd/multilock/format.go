package main

import (
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/multilock/go/multilock/source"
)

// label shows a name as it is if that is harmless on a terminal and in a table.
func label(name string) string {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) || unicode.IsSpace(r) }) {
		return strconv.Quote(name)
	}
	return name
}

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
		return short(source.Unknown)
	}
	return short(time.Duration(*s * float64(time.Second)))
}

func ellipsis(s string, limit int) string {
	runes := []rune(s)
	if len(runes) <= limit {
		return s
	}
	return string(runes[:limit-1]) + "…"
}
