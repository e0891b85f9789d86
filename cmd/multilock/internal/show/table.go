package show

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/multilock/go/cmd/multilock/internal/console"
)

// Table is rows of cells in columns. The last column is for remarks, which may be long.
type Table []string

// Row adds one. What stands in a cell may be anybody's.
func (t *Table) Row(cells ...any) {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		texts[i] = console.Line(fmt.Sprint(cell))
	}
	*t = append(*t, strings.Join(texts, "\t"))
}

// maxRows is how many rows of a table have columns of one width.
const maxRows = 10_000

// Print prints the table; in a long one the columns may move. On a terminal no line is
// longer than that is wide.
func (t Table) Print(e *console.Env) error {
	columns := 0
	if console.IsTerminal(e.Stdout) {
		columns = Columns(e.Stdout)
	}
	for rows := range slices.Chunk(t, maxRows) {
		if err := e.Print("%s\n", strings.Join(rows.Lines(columns), "\n")); err != nil {
			return err
		}
	}
	return nil
}

const (
	gap = 2 // between two columns
	// leastRemark is how much room a remark needs beside the other columns, or it stands
	// below its row, indented by so much.
	leastRemark, remarkIndent = 30, 4
	// leastName is what is left at least of the first column, by which things are called,
	// and leastCell of others.
	leastName, leastCell = 24, 12
	// leastColumns are in one line in any case.
	leastColumns = 3
)

// Lines are the rows in columns of one width. No line is wider than so many columns of a
// terminal, if that is not 0: what is longest is cut, and what finds no room stands below.
func (t Table) Lines(columns int) []string {
	rows, widths := t.cells()
	beside := len(widths)
	if columns > 0 {
		widths, beside = fit(widths, columns)
	}
	var lines []string
	for i, row := range rows {
		lines = append(lines, lineOf(row[:min(beside, len(row))], widths, columns))
		if i > 0 && len(row) > beside {
			lines = append(lines, cut(strings.Repeat(" ", remarkIndent)+strings.Join(row[beside:], "  "), columns))
		}
	}
	return lines
}

// fit narrows columns, and says how many of them find room beside each other.
func fit(widths []int, columns int) (narrowed []int, beside int) {
	last := len(widths) - 1
	others := slices.Clone(widths[:max(last, 0)])
	if last > 0 && narrow(others, columns-gap-min(widths[last], leastRemark)) {
		return append(others, min(widths[last], columns-gap-total(others))), last + 1
	}
	for beside = max(last, 1); ; beside-- {
		narrowed = slices.Clone(widths[:min(beside, len(widths))])
		if narrow(narrowed, columns) || beside <= leastColumns {
			return narrowed, beside
		}
	}
}

// cells are the table's, and how wide each column is.
func (t Table) cells() (rows [][]string, widths []int) {
	for _, row := range t {
		cells := strings.Split(row, "\t")
		rows = append(rows, cells)
		for i, cell := range cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], widthOf(cell))
		}
	}
	return rows, widths
}

// narrow makes the widest columns narrower until all fit, and the first one last. It reports
// whether that was possible without cutting away too much.
func narrow(widths []int, columns int) bool {
	for excess := total(widths) - columns; excess > 0; excess-- {
		widest := 0
		for i := 1; i < len(widths); i++ {
			if widths[i] > leastCell && (widest == 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest == 0 && widths[0] <= leastName {
			return false
		}
		widths[widest]--
	}
	return true
}

// total is how wide columns are together.
func total(widths []int) int {
	sum := gap * max(len(widths)-1, 0)
	for _, w := range widths {
		sum += w
	}
	return sum
}

func lineOf(row []string, widths []int, columns int) string {
	var line strings.Builder
	for i, cell := range row {
		cell = cut(cell, widths[i])
		if i < len(row)-1 {
			cell = padded(cell, widths[i]+gap)
		}
		line.WriteString(cell)
	}
	return cut(strings.TrimRight(line.String(), " "), columns)
}

// Columns is how wide a terminal is at present: windows are resized.
func Columns(terminal *os.File) int {
	width, _ := Size(terminal)
	return width
}

// Size is a terminal's width and height.
func Size(terminal *os.File) (columns, lines int) {
	columns, lines, err := term.GetSize(int(terminal.Fd())) //nolint:gosec // a descriptor fits
	if err != nil || columns <= 0 {
		columns = 80 // a serial line does not know
	}
	if err != nil || lines <= 0 {
		lines = 24
	}
	return columns, lines
}
