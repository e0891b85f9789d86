package source

import (
	"strings"
	"unicode/utf8"
)

// rawByte is the character that encodes the byte 0x00, at the end of the last private-use plane;
// the other bytes follow.
const rawByte = 0x10FF00

// EncodeName encodes a name, which may be any bytes, as UTF-8, so that JSON can store it: each byte
// that is not part of a character becomes a character of its own. The encoding is unambiguous, and
// leaves UTF-8 names without such characters unchanged.
func EncodeName(name string) string {
	return mapName(name, func(r rune, width int) bool { return r == utf8.RuneError && width == 1 || r >= rawByte },
		func(b *strings.Builder, piece string) {
			for i := range len(piece) {
				b.WriteRune(rawByte + rune(piece[i]))
			}
		})
}

// DecodeName reverses EncodeName.
func DecodeName(encoded string) string {
	return mapName(encoded, func(r rune, _ int) bool { return IsRawByte(r) },
		func(b *strings.Builder, piece string) {
			r, _ := utf8.DecodeRuneInString(piece)
			b.WriteByte(RawByte(r))
		})
}

// IsRawByte reports whether a character of an encoded name represents a raw byte.
func IsRawByte(r rune) bool { return r >= rawByte && r <= rawByte+0xff }

// RawByte returns the byte that the character represents.
func RawByte(r rune) byte { return byte(r - rawByte) } //nolint:gosec // at most 0xff

// mapName replaces the picked characters of a name.
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
