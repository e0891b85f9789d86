package show

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
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

// Table is rows of cells in columns.
type Table []string

// Row adds one. What stands in a cell may be anybody's.
func (t *Table) Row(cells ...any) {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		texts[i] = console.Harmless(fmt.Sprint(cell))
	}
	*t = append(*t, strings.Join(texts, "\t"))
}

// maxRows is how many rows of a table have columns of one width.
const maxRows = 10_000

// Print prints the table; in a long one the columns may move.
func (t Table) Print(e *console.Env) error {
	for rows := range slices.Chunk(t, maxRows) {
		var out strings.Builder
		columns := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(columns, strings.Join(rows, "\n")) // memory takes it all
		_ = columns.Flush()
		if err := e.Print("%s", out.String()); err != nil {
			return err
		}
	}
	return nil
}

// Some adds to a sum how many there are of something, if there are any.
func Some(n int, words string) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(", %d %s", n, words)
}
