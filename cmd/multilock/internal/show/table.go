package show

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/multilock/go/cmd/multilock/internal/console"
)

// Table has rows of cells. The last column is for remarks, which may be long.
type Table []string

// Row adds a row. Cells may hold untrusted text.
func (t *Table) Row(cells ...any) {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		texts[i] = console.Line(fmt.Sprint(cell))
	}
	*t = append(*t, strings.Join(texts, "\t"))
}

// maxRows bounds how many rows share their column widths.
const maxRows = 10_000

// Print prints the table. On a terminal it is cut to the terminal's width. Column widths may change within a
// long table.
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
	gap = 2 // between columns
	// minRemark is the minimum width of a remark beside the other columns. With less room it goes below its
	// row, indented by remarkIndent.
	minRemark, remarkIndent = 30, 4
	// minName is the minimum width of the first column, which has the names, and minCell that of the others.
	minName, minCell = 24, 12
	// minColumns always share a line.
	minColumns = 3
)

// Lines formats the rows. If columns is not 0, no line is wider: the longest cells are cut, and cells that do
// not fit go below their row.
func (t Table) Lines(columns int) []string { return slices.Concat(t.ByRow(columns)...) }

// ByRow formats the rows as Lines does, and returns the lines of each row.
func (t Table) ByRow(columns int) (lines [][]string) {
	rows, widths := t.cells()
	beside := len(widths)
	if columns > 0 {
		widths, beside = fit(widths, columns)
	}
	for i, row := range rows {
		of := []string{lineOf(row[:min(beside, len(row))], widths, columns)}
		if i > 0 && len(row) > beside {
			of = append(of, cut(strings.Repeat(" ", remarkIndent)+strings.Join(row[beside:], "  "), columns))
		}
		lines = append(lines, of)
	}
	return lines
}

// fit narrows the columns, and returns how many fit beside each other.
func fit(widths []int, columns int) (narrowed []int, beside int) {
	last := len(widths) - 1
	others := slices.Clone(widths[:max(last, 0)])
	if last > 0 && narrow(others, columns-gap-min(widths[last], minRemark)) {
		return append(others, min(widths[last], columns-gap-total(others))), last + 1
	}
	for beside = max(last, 1); ; beside-- {
		narrowed = slices.Clone(widths[:min(beside, len(widths))])
		if narrow(narrowed, columns) || beside <= minColumns {
			return narrowed, beside
		}
	}
}

// cells splits the rows, and returns the width of each column.
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

// narrow narrows the widest columns until all fit, the first column last. It reports whether they fit without
// cutting too much.
func narrow(widths []int, columns int) bool {
	for excess := total(widths) - columns; excess > 0; excess-- {
		widest := 0
		for i := 1; i < len(widths); i++ {
			if widths[i] > minCell && (widest == 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest == 0 && widths[0] <= minName {
			return false
		}
		widths[widest]--
	}
	return true
}

// total returns the width of all columns with their gaps.
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

// Columns returns the current width of a terminal, which may be resized.
func Columns(terminal *os.File) int {
	width, _ := Size(terminal)
	return width
}

// Size returns a terminal's width and height.
func Size(terminal *os.File) (columns, lines int) {
	columns, lines, err := term.GetSize(int(terminal.Fd())) //nolint:gosec // a descriptor fits
	if err != nil || columns <= 0 {
		columns = 80 // a serial line reports no size
	}
	if err != nil || lines <= 0 {
		lines = 24
	}
	return columns, lines
}
