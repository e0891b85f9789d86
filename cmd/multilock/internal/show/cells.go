package show

import (
	"fmt"
	"strconv"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/multilock/source"
)

// Dash stands for what is not there.
func Dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// PID is the cell of a process number.
func PID(n int) string {
	if n <= 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

// Ago writes a number of seconds of a view; "?" if it is unknown.
func Ago(s *float64) string {
	if s == nil {
		return console.Short(source.Unknown)
	}
	return console.Short(time.Duration(*s * float64(time.Second)))
}

// Ellipsis is as much of a text as the limit allows.
func Ellipsis(s string, limit int) string {
	runes := []rune(s)
	if len(runes) <= limit {
		return s
	}
	return string(runes[:limit-1]) + "…"
}

// Some adds to a sum how many there are of something, if there are any.
func Some(n int, words string) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(", %d %s", n, words)
}
