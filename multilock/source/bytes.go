package source

import (
	"strings"
	"unicode/utf8"
)

// rawByte is the character that stands for the byte 0x00 in an encoded name, at the end
// of the last private plane; the other bytes follow.
const rawByte = 0x10FF00

// EncodeName gives a name, which may be any bytes, as UTF-8, so that JSON can keep it: each
// byte that is not part of a character becomes a character of its own. No two names have the
// same form, and one that is UTF-8 keeps its own.
func EncodeName(name string) string {
	return mapName(name, func(r rune, width int) bool { return r == utf8.RuneError && width == 1 || r >= rawByte },
		func(b *strings.Builder, piece string) {
			for i := range len(piece) {
				b.WriteRune(rawByte + rune(piece[i]))
			}
		})
}

// DecodeName gives the name that EncodeName was given.
func DecodeName(encoded string) string {
	return mapName(encoded, func(r rune, _ int) bool { return IsRawByte(r) },
		func(b *strings.Builder, piece string) {
			r, _ := utf8.DecodeRuneInString(piece)
			b.WriteByte(RawByte(r))
		})
}

// IsRawByte reports whether a character of an encoded name stands for a byte.
func IsRawByte(r rune) bool { return r >= rawByte && r <= rawByte+0xff }

// RawByte is that byte.
func RawByte(r rune) byte { return byte(r - rawByte) } //nolint:gosec // at most 0xff

// mapName replaces those characters of a name that are picked.
func mapName(name string, picked func(r rune, width int) bool, write func(b *strings.Builder, piece string)) string {
	var b strings.Builder
	copied := 0
	for i := 0; i < len(name); {
		r, width := utf8.DecodeRuneInString(name[i:])
		if picked(r, width) {
			b.WriteString(name[copied:i])
			write(&b, name[i:i+width])
			copied = i + width
		}
		i += width
	}
	if copied == 0 {
		return name
	}
	return b.String() + name[copied:]
}
