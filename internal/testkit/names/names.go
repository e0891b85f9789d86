// Package names makes names for tests: pairs of different byte strings that a lossy step, such as an
// encoding, a trim or case folding, would make equal.
package names

import (
	"math/rand/v2"
	"strings"
)

// Pair draws two different names, without NUL bytes and slashes.
func Pair(r *rand.Rand) (a, b string) {
	for {
		a = draw(r)
		b = change(r, a)
		if a != b && a != "" && b != "" && !strings.ContainsAny(a+b, "/\x00") {
			return a, b
		}
	}
}

func pieces() []string {
	return []string{
		"a", "B", "job", "7", "-", ".", "_", "%41", "%", "\\", "\"", "'", "$x", "#", ":", ",", "{}", "*", "~", "é", "e\u0301", "ß", "\u00a0",
		"\xe9", "\xe8", "\xff", "\x80", "\xc3", "\xed\xb3\xa9", "\ufffd", "\U0010ffe9", "\U0010ff00", "\xf4\x8f\xbf\xa9", "\u200b", "\u202e", "\t", "\n", "\r", " ", "\x1b[31m", "\x7f", "日本",
	}
}

func draw(r *rand.Rand) string {
	all := pieces()
	var b strings.Builder
	for range 1 + r.IntN(5) {
		b.WriteString(all[r.IntN(len(all))])
	}
	return b.String()
}

// change returns a name similar to another one.
func change(r *rand.Rand, name string) string {
	at := r.IntN(len(name))
	switch r.IntN(8) {
	case 0:
		return strings.ToUpper(name)
	case 1:
		return strings.TrimSpace(name)
	case 2:
		return string([]rune(name)) // like package json
	case 3:
		return name + []string{"\r", " ", "\n", ".", "\u200b"}[r.IntN(5)]
	case 4:
		return strings.ToValidUTF8(name, "")
	case 5:
		return name[:at] + name[at+1:]
	case 6:
		return strings.ReplaceAll(name, "%", "%25")
	default:
		return name[:at] + string([]byte{byte(r.IntN(256))}) + name[at+1:]
	}
}
