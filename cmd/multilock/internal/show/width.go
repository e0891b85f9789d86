package show

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// widthOf returns how many columns a text takes on a terminal.
func widthOf(text string) (columns int) {
	for _, r := range text {
		columns += runeWidth(r)
	}
	return columns
}

// emojiMark turns the preceding character into a picture, which is wide.
const emojiMark = '\ufe0f'

// runeWidth returns the width of a character, the larger one if terminals differ.
func runeWidth(r rune) int {
	switch {
	case r < unicode.MaxASCII || r == emojiMark:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0 // combines with the preceding character
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	case width.Neutral, width.EastAsianAmbiguous, width.EastAsianNarrow, width.EastAsianHalfwidth:
	}
	return 1
}

// Fitting cuts a text to a number of columns.
func Fitting(text string, columns int) string {
	for i, r := range text {
		if columns -= runeWidth(r); columns < 0 {
			return text[:i]
		}
	}
	return text
}

// cut shortens a text to a number of columns, and marks the cut.
func cut(text string, columns int) string {
	if columns < 1 || widthOf(text) <= columns {
		return text
	}
	return Fitting(text, columns-1) + "…"
}

// padded pads a text with spaces.
func padded(text string, columns int) string {
	return text + strings.Repeat(" ", max(columns-widthOf(text), 0))
}
