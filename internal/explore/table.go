package explore

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// line is a line of a trace.
type line struct {
	at     time.Duration
	column int
	format string // with args, a text for lines that are printed
	args   []any
}

const width = 60

// long matches the part of a token that a reader does not need.
var long = regexp.MustCompile(`-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// table formats the trace: a column for each actor, a line for each request.
func (w *World) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%10s", "")
	for _, a := range w.actors {
		fmt.Fprintf(&b, "  %-*s", width, a.Name)
	}
	for _, l := range w.lines {
		fmt.Fprintf(&b, "\n%10s%s  %s", l.at, strings.Repeat(" ", l.column*(width+2)), long.ReplaceAllString(strings.TrimSpace(fmt.Sprintf(l.format, l.args...)), ""))
	}
	return b.String()
}
