package explore

import (
	"regexp"
	"strings"

	"github.com/multilock/go/internal/simnfs"
)

// duration matches a duration in a text for people.
var duration = regexp.MustCompile(` for [0-9][0-9a-z.µ]*`)

// written precedes the time in a record, which is for people.
const written = `"prepared":"`

// tokenLength is the length of a token. Tokens are random, and differ in each run.
const tokenLength = 36

// labelled replaces each token in a text by its first user and a number, and removes durations, which
// depend on the speed of this machine.
func (w *World) labelled(text string) string {
	if len(text) < tokenLength {
		return text
	}
	label, known := w.texts[text]
	if !known {
		label = w.relabelled(text)
		w.texts[text] = label
	}
	return label
}

func (w *World) relabelled(text string) string {
	if strings.Contains(text, " for ") {
		text = duration.ReplaceAllString(text, " for")
	}
	if w.relative {
		text = withoutDate(text)
	}
	var b strings.Builder
	for len(text) >= tokenLength {
		next := strings.IndexByte(text, '-')
		if next < 0 {
			break
		}
		begin := next - 8
		if begin < 0 || !isToken(text[begin:]) {
			b.WriteString(text[:next+1])
			text = text[next+1:]
			continue
		}
		b.WriteString(text[:begin])
		b.WriteString(w.tokenName(text[begin : begin+tokenLength]))
		text = text[begin+tokenLength:]
	}
	b.WriteString(text)
	return b.String()
}

// numbered matches a labelled token.
var numbered = regexp.MustCompile(`(token [A-Za-z]*).`)

// likened labels a text, without the time of its writing, and with equal labels for all tokens of an actor.
func (w *World) likened(text string) string {
	return numbered.ReplaceAllString(withoutDate(w.labelled(text)), "$1")
}

func withoutDate(text string) string {
	head, rest, dated := strings.Cut(text, written)
	if !dated {
		return text
	}
	_, tail, _ := strings.Cut(rest, `"`)
	return head + tail
}

func isToken(text string) bool {
	return len(text) >= tokenLength && text[8] == '-' && text[13] == '-' && text[18] == '-' && text[23] == '-'
}

func (w *World) tokenName(token string) string {
	if _, known := w.labels[token]; !known {
		w.labels[token] = "token " + string(rune('0'+len(w.labels)))
	}
	return w.labels[token]
}

// sees labels the new tokens in a request with its actor.
func (a *Actor) sees(r simnfs.Request) {
	for text := r.Path; len(text) >= tokenLength; text = text[1:] {
		if !isToken(text) {
			continue
		}
		token := text[:tokenLength]
		if _, known := a.world.labels[token]; !known {
			a.tokens++
			a.world.labels[token] = "token " + a.Name + string(rune('0'+a.tokens))
		}
	}
}
