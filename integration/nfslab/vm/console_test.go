//go:build linux

package vm

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConsoleKeepsTheLastLinesWithoutControlCodes(t *testing.T) {
	console := newConsole(nil)
	fmt.Fprint(console, "\x1bc\x1b[?7l\x1b[2Jone\r\ntwo\r\n\x1b[31mthree\x1b[0m\r\n")
	require.Equal(t, "two\nthree", console.Tail(2))
	require.Equal(t, "one\ntwo\nthree", console.Tail(10))
}

func TestConsoleForgetsWhatIsLongAgo(t *testing.T) {
	console := newConsole(nil)
	for i := range 2 * consoleLimit {
		fmt.Fprintln(console, i)
	}
	require.LessOrEqual(t, console.bytes.Len(), consoleLimit)
	require.Equal(t, fmt.Sprint(2*consoleLimit-1), console.Tail(1))
}
