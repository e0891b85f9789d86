package show

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// widthOf is how many columns of a terminal a text takes.
func widthOf(text string) (columns int) {
	for _, r := range text {
		columns += runeWidth(r)
	}
	return columns
}

// emojiMark makes a picture of the character before it, which is wide then.
const emojiMark = '\ufe0f'

// runeWidth is that of one character. Where terminals differ it is the larger one.
func runeWidth(r rune) int {
	switch {
	case r < unicode.MaxASCII || r == emojiMark:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0 // it stands on the one before
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	case width.Neutral, width.EastAsianAmbiguous, width.EastAsianNarrow, width.EastAsianHalfwidth:
	}
	return 1
}

// Fitting is as much of a text as fits into so many columns.
func Fitting(text string, columns int) string {
	for i, r := range text {
		if columns -= runeWidth(r); columns < 0 {
			return text[:i]
		}
	}
	return text
}

// cut is a text in so many columns, with a mark if something is missing.
func cut(text string, columns int) string {
	if columns < 1 || widthOf(text) <= columns {
		return text
	}
	return Fitting(text, columns-1) + "…"
}

// padded fills a text up with blanks.
func padded(text string, columns int) string {
	return text + strings.Repeat(" ", max(columns-widthOf(text), 0))
}
