package source

import (
	"strings"
	"unicode"
)

// What people read of a holder is cut to so many bytes, so that a record does not
// outgrow what sources read.
const (
	MaxCommand = 4 << 10
	MaxUser    = 256
)

// Bounded is the holder with a command and a user of limited length.
func (h Holder) Bounded() Holder {
	h.Command, h.User = Shorten(h.Command, MaxCommand), Shorten(h.User, MaxUser)
	return h
}

// Printable is the holder as it can be shown, whoever wrote it: see Printable.
func (h Holder) Printable() Holder {
	h.Host, h.User, h.Command = Printable(h.Host), Printable(h.User), Printable(h.Command)
	return h
}

// Shorten cuts a text to limit bytes, between two characters, and says so.
func Shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "..."
}

// Printable replaces what is not printable. It keeps whoever writes a record from
// writing to the terminals of those who look at it.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}
