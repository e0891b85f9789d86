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

// configReport is the output of "config --json".
type configReport struct {
	Settings []place.Setting `json:"settings"`
	Files    []string        `json:"files"` // the configuration files, in order of increasing precedence
}

// Config shows the settings in effect, and their origin.
func Config(e *Env) *cli.Command {
	return &cli.Command{
		Name:  "config",
		Usage: "show the settings in effect, and their origin",
		Description: `Shows the settings in effect, and where each comes from: an option, a variable, a
file (~/.config/multilock/config, then /etc/multilock.conf), or a default.

   dir   = "/shared/jobs"       # as -d; or source = "mongodb://..."
   group = "nightly"            # as -g
   ttl   = "5m"                 # as --ttl
   trust = "ada,bob"            # as --trust
   local = true                 # locks are for this host only: no warning
   require_shared = true        # as --require-shared
   capture = true               # as run --capture, unless on a terminal
   capture_keep = 20            # as --capture-keep
   capture_size = "64M"         # as --capture-size

These are the settings in a file, in TOML. Both files are optional; the user's
overrides the other. MULTILOCK_CONFIG names a file instead of them; with "none", no
file is read. A file that another user can write to is rejected, and nothing is
locked then. Do not put a password into it: see multilock help environment.`,
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
	_, _ = fmt.Fprintln(table, "SETTING\tVALUE\tORIGIN")
	for _, s := range settings {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\n", s.Name, cmp.Or(console.Harmless(s.Value), "-"), console.Harmless(s.From))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return e.Print("%s", text.String())
}
