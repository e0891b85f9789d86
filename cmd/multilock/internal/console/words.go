package console

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/multilock/go/multilock/source"
)

// CommandLine returns a command as a person would type it into a shell.
func CommandLine(args []string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = Quote(a)
	}
	return strings.Join(quoted, " ")
}

// Quote quotes a text as one word for a shell, safe to show on a terminal. Text with characters that
// are not printable takes the form $'...', which bash, zsh and ksh support.
func Quote(s string) string {
	switch {
	case s != "" && !strings.ContainsFunc(s, special):
		return s
	case utf8.ValidString(s) && !strings.ContainsFunc(s, unprintable):
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\'' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String() + "'"
}

// special reports whether a character needs quoting. Outside of ASCII only letters and digits do not,
// because what a shell takes for a blank depends on the locale.
func special(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./:=,+@%", r) || r == utf8.RuneError
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// Harmless replaces characters of other users' texts that must not reach a terminal, or would break a
// line or a table.
func Harmless(s string) string {
	return strings.Map(func(r rune) rune {
		if unprintable(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// Line returns a text as one harmless line: joined errors have several.
func Line(s string) string { return Harmless(strings.ReplaceAll(s, "\n", "; ")) }

// lines makes each line of a text harmless.
func lines(s string) string {
	each := strings.Split(s, "\n")
	for i, line := range each {
		each[i] = Harmless(line)
	}
	return strings.Join(each, "\n")
}

// Pass writes a text that may come from other users: unchanged to a program, and without terminal
// control characters to a person.
func Pass(to *os.File, text []byte) error {
	if IsTerminal(to) {
		text = []byte(strings.Map(func(r rune) rune {
			if unprintable(r) && r != '\n' && r != '\t' {
				return unicode.ReplacementChar
			}
			return r
		}, string(text)))
	}
	_, err := to.Write(text)
	return err
}

// Escaped escapes what package json leaves in JSON: control characters beyond ASCII, and characters
// that change the direction of writing.
func Escaped(text []byte) []byte {
	harmful := func(r rune) bool { return r != '\n' && unprintable(r) }
	if utf8.Valid(text) && !bytes.ContainsFunc(text, harmful) {
		return text
	}
	var out []byte
	for _, r := range string(text) {
		switch {
		case !harmful(r):
			out = utf8.AppendRune(out, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

// Label returns a name unchanged if it is harmless on a terminal and in a table, and quoted otherwise.
// A name with invalid UTF-8 is quoted: a terminal may take a lone byte for a control character.
func Label(name string) string {
	if name == "" || !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) || unicode.IsSpace(r) }) {
		return strconv.Quote(name)
	}
	return name
}

// Short formats a duration for people, in at most two units.
func Short(d time.Duration) string {
	switch {
	case d == source.Unknown:
		return "?"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%02dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// HeldBy describes a lock's holder, since when it holds the lock, and why it counts as alive.
func HeldBy(s source.Observation) string {
	var b strings.Builder
	fmt.Fprintf(&b, "held by %s", s.Record.Holder)
	if s.Age != source.Unknown {
		fmt.Fprintf(&b, ", for %s", Short(s.Age))
	}
	if s.Silence != source.Unknown && s.Record.Heartbeat > 0 {
		fmt.Fprintf(&b, ", last heartbeat %s ago", Short(s.Silence))
	}
	if s.Why != "" {
		fmt.Fprintf(&b, " (%s)", s.Why)
	}
	return b.String()
}

// AndOutput adds to the description of a job's outcome why its output is incomplete, if it is.
func AndOutput(words, output string) string {
	if output == "" {
		return words
	}
	return strings.TrimPrefix(words+"; its output is not complete: "+output, "; ")
}
