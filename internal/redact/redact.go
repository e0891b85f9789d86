// Package redact hides apparent secrets in a command line, before it is written where other users can
// read it. It recognises a secret by what precedes it: the name of an option, a variable, a field or a
// header, or the user of a URL. The result is for people: it must not be executed or used for decisions.
//
// docs/internals/redaction.md has the rules.
package redact

import (
	"cmp"
	"slices"
	"strings"
)

// mark replaces a secret.
const mark = "..."

// Args returns the words of a command with a mark in the place of each secret.
func Args(args []string) []string {
	var c command
	shown := make([]string, len(args))
	for i, arg := range args {
		c.found = nil
		c.word(textOf(arg))
		shown[i] = c.found.hide(arg)
	}
	return shown
}

// Line is Args for a shell command line. It keeps the quotes.
func Line(line string) string {
	return secretsOfLine(textOf(line), 0).hide(line)
}

// text is a part of a command line as a program receives it, without shell quotes. Byte i is at
// position at[i] of the original.
type text struct {
	plain string
	at    []int
}

func textOf(shown string) text {
	at := make([]int, len(shown))
	for i := range at {
		at[i] = i
	}
	return text{shown, at}
}

// secrets are the ranges to hide, each with its start and end.
type secrets [][2]int

// add adds a part of a text, if it can be a secret.
func (s *secrets) add(t text, from, to int) {
	if from < to && !isHarmless(t.plain[from:to]) {
		*s = append(*s, [2]int{t.at[from], t.at[to-1] + 1})
	}
}

// hide replaces each secret by a mark, and adjacent secrets by one.
func (s secrets) hide(shown string) string {
	slices.SortFunc(s, func(a, b [2]int) int { return cmp.Or(a[0]-b[0], a[1]-b[1]) })
	var out strings.Builder
	end := 0
	for i, secret := range s {
		if i == 0 || secret[0] > end {
			out.WriteString(shown[end:secret[0]])
			out.WriteString(mark)
		}
		end = max(end, secret[1])
	}
	return out.String() + shown[end:]
}
