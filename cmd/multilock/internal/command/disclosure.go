package command

import (
	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/internal/redact"
)

// disclosure controls which text of a command line is recorded and reported. All users that can read the
// locks can read recorded commands, as can the recipients of a report.
type disclosure struct {
	label  string // replaces the command
	redact bool
}

// words returns the text to show for a command.
func (d *disclosure) words(args []string) string {
	switch {
	case d.label != "":
		return d.label
	case d.redact:
		args = redact.Args(args)
	}
	return console.CommandLine(args)
}

// line returns the text to show for a shell command.
func (d *disclosure) line(command string) string {
	if d.label != "" {
		return d.label
	}
	return d.text(command)
}

// text returns the text to show for a text that contains a command.
func (d *disclosure) text(text string) string {
	if d.redact {
		return redact.Line(text)
	}
	return text
}

// differ returns the texts to show for two different texts. They differ even if redaction makes the texts
// equal.
func (d *disclosure) differ(a, b string) (shownA, shownB string) {
	if shownA, shownB = d.text(a), d.text(b); shownA == shownB {
		shownB += " (it differs in what --redact hides)"
	}
	return shownA, shownB
}
