package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// FuzzWords: any name is displayed as UTF-8 without control characters, by each function that prepares text
// for a terminal.
func FuzzWords(f *testing.F) {
	for _, seed := range []string{
		"", "nightly", "a b", "\x9b31mred", "\xc2\x9b31mred", "\x1b[31mred", "a\nb\tc", "\u202egnp.exe", "\xff\xfe", "\xf4\x90\x80\x80", "\xed\xa0\x80", "\U000e0041", "é☃", "\x85", "$'x'", `\x9b`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		value, err := json.Marshal(map[string]string{text: text})
		require.NoError(t, err)
		for way, shown := range map[string]string{
			"harmless": Harmless(text), "label": Label(text), "quote": Quote(text), "command line": CommandLine([]string{text, text}),
			"JSON": string(Escaped(value)), "broken JSON": string(Escaped([]byte(text))), "lines": lines(text),
		} {
			requireHarmless(t, way, shown)
		}
	})
}

func requireHarmless(t *testing.T, way, shown string) {
	t.Helper()
	require.True(t, utf8.ValidString(shown), "%s: %q", way, shown)
	shown = strings.ReplaceAll(shown, "\n", "")
	require.False(t, strings.ContainsFunc(shown, func(r rune) bool { return !unicode.IsPrint(r) }), "%s: %q", way, shown)
}

// Print makes all output harmless, even if its caller did not.
func TestPrintedIsHarmless(t *testing.T) {
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer out.Close()
	e := &Env{Stdout: out, Stderr: out}
	require.NoError(t, e.Print("%s %s\n", "\x9b31m", "\u202e\x1b[2J"))
	require.NoError(t, e.PrintLine("\x9b\u009b"))
	require.NoError(t, e.PrintJSON([]string{"\x9b\u009b"}))
	e.Say("%s", "\x9b31m\n")
	e.Flush()
	text, err := os.ReadFile(out.Name())
	require.NoError(t, err)
	requireHarmless(t, "out", string(text))
	require.Equal(t, 6, bytes.Count(text, []byte("\n")))
}

func TestLine(t *testing.T) {
	joined := errors.Join(errors.New("it failed"), errors.New("and then\x1b[m"))
	require.Equal(t, "it failed; and then\uFFFD[m", Line(joined.Error()))
}
