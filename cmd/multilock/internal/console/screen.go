package console

import (
	"os"
	"strings"
)

// Redraw shows lines from the top of a terminal on, in the place of what was there
// (ECMA-48, CUP, EL and ED). Nothing is emptied first, so that nothing flickers.
func (e *Env) Redraw(shown []string) error {
	var text strings.Builder
	text.WriteString("\x1b[H")
	for _, line := range shown {
		text.WriteString(Harmless(line) + "\x1b[K\n")
	}
	return e.print(text.String() + "\x1b[J")
}

// readKeys passes on what is typed, until nothing more can be read.
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
