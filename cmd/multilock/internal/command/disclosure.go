package command

import (
	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/internal/redact"
)

// disclosure is what others may learn of a command line. What is recorded of a job, all
// read who can read the locks, and who are sent a report.
type disclosure struct {
	label  string // what they learn instead
	redact bool
}

// words is what is shown of a command.
func (d *disclosure) words(args []string) string {
	switch {
	case d.label != "":
		return d.label
	case d.redact:
		args = redact.Args(args)
	}
	return console.CommandLine(args)
}

// line is what is shown of a command for a shell.
func (d *disclosure) line(command string) string {
	if d.label != "" {
		return d.label
	}
	return d.text(command)
}

// text is what is shown of what has a command in it.
func (d *disclosure) text(text string) string {
	if d.redact {
		return redact.Line(text)
	}
	return text
}

// differ are two texts that are not the same, though what is shown of them may be.
func (d *disclosure) differ(a, b string) (shownA, shownB string) {
	if shownA, shownB = d.text(a), d.text(b); shownA == shownB {
		shownB += " (it differs in what --redact hides)"
	}
	return shownA, shownB
}
