package command

import (
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/internal/redact"
)

// disclosure is what others may learn of a command line. What is recorded of a job, all
// read who can read the locks, and who are sent a report.
type disclosure struct {
	label  string // what they learn instead
	redact bool
}

const envRedact = "MULTILOCK_REDACT"

func (d *disclosure) flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "label", Destination: &d.label, Usage: "record and show this `TEXT` in place of the command line", Category: "OUTPUT"},
		&cli.BoolFlag{Name: "redact", Destination: &d.redact, Value: true, DisableDefaultText: true, Usage: "record and show ... for what looks like a secret in a command line, such as --password X (default; --redact=false if not) [$" + envRedact + "]", Category: "OUTPUT"},
	}
}

// read completes the options by the environment.
func (d *disclosure) read(c *cli.Context, e *Env) (err error) {
	command := c.Command.Name
	if givenAt(c, "label") != nil && d.label == "" {
		return console.Usagef(command, "--label is empty")
	}
	if text := e.Getenv(envRedact); text != "" && givenAt(c, "redact") == nil {
		if d.redact, err = strconv.ParseBool(text); err != nil {
			return console.Usagef(command, "%s=%q: write 1 or 0", envRedact, text)
		}
	}
	return nil
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
