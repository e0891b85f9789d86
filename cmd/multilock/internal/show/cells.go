package show

import (
	"fmt"
	"strconv"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/multilock/source"
)

// Dash returns "-" for an empty cell.
func Dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// PID formats a process ID as a cell.
func PID(n int) string {
	if n <= 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

// Ago formats seconds, "?" if they are unknown.
func Ago(s *float64) string {
	if s == nil {
		return console.Short(source.Unknown)
	}
	return console.Short(time.Duration(*s * float64(time.Second)))
}

// Ellipsis shortens a text to limit characters.
func Ellipsis(s string, limit int) string {
	runes := []rune(s)
	if len(runes) <= limit {
		return s
	}
	return string(runes[:limit-1]) + "…"
}

// Some formats a part of a sum, "" if n is 0.
func Some(n int, words string) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(", %d %s", n, words)
}
