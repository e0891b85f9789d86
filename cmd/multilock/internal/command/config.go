package command

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
)

// configReport is what "config --json" prints.
type configReport struct {
	Settings []place.Setting `json:"settings"`
	Files    []string        `json:"files"` // that were looked for, the one that counts most last
}

// Config shows which settings apply, and whence.
func Config(e *Env) *cli.Command {
	return &cli.Command{
		Name:  "config",
		Usage: "show which settings apply here, and whence",
		Description: `Shows where locks live, their group, their time to live, whom to believe, and what
says so: an option, a variable, a file, or the program itself, in this order.

The files are /etc/multilock.conf and ~/.config/multilock/config (of a user, which
counts more), or the one that MULTILOCK_CONFIG names; with "none", no file is read.
They are optional, and TOML:

   dir   = "/shared/jobs"       # as -d; or source = "mongodb://USER@HOST/DB.COLLECTION"
   group = "nightly"            # as -g
   ttl   = "5m"                 # as --ttl
   trust = "ada,bob"            # as --trust
   local = true                 # locks are for this host alone: do not warn of that
   require_shared = true        # as --require-shared

A file that somebody else can write to is refused, and nothing is locked then. No
password belongs into it: see multilock help environment.`,
		Action: func(c *cli.Context) error {
			if err := noArguments(c); err != nil {
				return err
			}
			settings, files, err := e.Kinds.Settings(askedOf(c), e.Env)
			if err != nil {
				return &console.UsageError{Command: "config", Err: err}
			}
			if commonBool(c, "json") {
				return e.PrintJSON(configReport{settings, append([]string{}, files...)})
			}
			return printSettings(e, settings)
		},
	}
}

func printSettings(e *Env, settings []place.Setting) error {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "SETTING\tVALUE\tFROM")
	for _, s := range settings {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\n", s.Name, cmp.Or(console.Harmless(s.Value), "-"), console.Harmless(s.From))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return e.Print("%s", text.String())
}
