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
		Description: `Shows which settings apply here, and what says so: an option, a variable, a file
(/etc/multilock.conf, or ~/.config/multilock/config, which counts more), or the
program itself. The files are optional, and TOML:

   dir   = "/shared/jobs"       # as -d; or source = "mongodb://..."
   group = "nightly"            # as -g
   ttl   = "5m"                 # as --ttl
   trust = "ada,bob"            # as --trust
   local = true                 # locks are for this host alone: no warning
   require_shared = true        # as --require-shared

MULTILOCK_CONFIG names a file in their place; with "none", no file is read. A file that
another user can write to is refused, and nothing is locked then. No
password belongs into it: see multilock help environment.`,
		Action: func(c *cli.Context) error {
			if err := e.check(c); err != nil {
				return err
			}
			settings, files, err := e.Kinds.Settings(e.asked, e.Env)
			if err != nil {
				return &console.UsageError{Command: "config", Err: err}
			}
			if e.out.JSON {
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
