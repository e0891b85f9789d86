package console

import (
	"os"
	"strings"
)

// Color is the color of a line (ECMA-48, SGR); "" changes nothing.
type Color string

// The colors of lines.
const (
	Plain  Color = ""
	Bold   Color = "1"
	Red    Color = "31"
	Yellow Color = "33"
)

// ScreenLine is a line of the screen.
type ScreenLine struct {
	Text  string
	Color Color
}

// Redraw replaces the content of a terminal by lines, from the top (ECMA-48, CUP, EL and ED). It clears
// nothing first, to avoid flicker.
func (e *Env) Redraw(lines []ScreenLine) error {
	var text strings.Builder
	text.WriteString("\x1b[H")
	colored := e.Getenv("NO_COLOR") == "" && e.Getenv("TERM") != "dumb"
	for _, line := range lines {
		shown := Harmless(line.Text)
		if colored && line.Color != Plain {
			shown = "\x1b[" + string(line.Color) + "m" + shown + "\x1b[0m"
		}
		text.WriteString(shown + "\x1b[K\n")
	}
	return e.print(text.String() + "\x1b[J")
}

// readKeys passes on input until a read fails.
func readKeys(from *os.File) <-chan byte {
	keys := make(chan byte)
	go func() {
		defer close(keys)
		var key [1]byte
		for {
			if n, err := from.Read(key[:]); err != nil || n == 0 {
				return
			}
			keys <- key[0]
		}
	}()
	return keys
}
