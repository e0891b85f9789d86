// Package redact hides what looks like a secret in a command line, before that is written
// down where others can read it. It knows a secret by what stands before it: the name of
// an option, of a variable, of a field or of a header, or the user of a URL. What it
// returns is for people: nothing may be run, or decided, by it.
//
// docs/secrets.md has the rules in words.
package redact

import (
	"cmp"
	"slices"
	"strings"
)

// mark stands for a secret.
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

// Line does the same with a line for a shell. Its quotes stay.
func Line(line string) string {
	return secretsOfLine(textOf(line), 0).hide(line)
}

// text is a part of a command line as a program gets it, without the quotes of a shell.
// Its byte i stands at the place at[i] of what is to be shown.
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

// secrets are the places of what is to be hidden: from, and up to.
type secrets [][2]int

// add takes a part of a text for a secret, if it can be one.
func (s *secrets) add(t text, from, to int) {
	if from < to && !isHarmless(t.plain[from:to]) {
		*s = append(*s, [2]int{t.at[from], t.at[to-1] + 1})
	}
}

// hide puts a mark in the place of each secret, and one for those that touch.
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
