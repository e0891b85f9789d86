//go:build manual

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cpuguy83/go-md2man/v2/md2man"
	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/command"
	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/help"
	"github.com/multilock/go/cmd/multilock/internal/options"
)

// forRelease are the commands of a program that makes a release (go run -tags manual), and of
// no other: the formatter is half a megabyte that no user needs.
func forRelease() []maker {
	const name = "__manual"
	return []maker{{name, func(e *command.Env) *cli.Command {
		return &cli.Command{
			Name: name, Hidden: true, Usage: "write the manual pages into a directory", ArgsUsage: "DIRECTORY [PROTOCOL.MD ['DATE VERSION']]",
			Action: func(c *cli.Context) error {
				if c.Args().Len() < 1 {
					return console.Usagef(name, "into which directory?")
				}
				return writeManual(newApp(e), c.Args().Get(0), c.Args().Get(1), c.Args().Get(2))
			},
		}
	}}}
}

// writeManual writes a page for the program, one for each command, and one for the protocol,
// all from the texts that --help and docs/ show. The edition stands at their feet.
func writeManual(app *cli.App, dir, protocol, edition string) error {
	pages := map[string]string{"multilock.1": page(app, nil)}
	for _, each := range documented(app) {
		pages["multilock-"+each.Name+".1"] = page(app, each)
	}
	for name, text := range pages {
		if err := writePage(filepath.Join(dir, name), edition, text); err != nil {
			return err
		}
	}
	if err := writePage(filepath.Join(dir, "multilock.7"), edition, concepts()); err != nil || protocol == "" {
		return err
	}
	text, err := os.ReadFile(protocol)
	if err != nil {
		return fmt.Errorf("the protocol: %w", err)
	}
	return writePage(filepath.Join(dir, "multilock-protocol.7"), edition, "% multilock-protocol 7\n\n# NAME\n\nmultilock-protocol - the bytes on disk, and the steps\n\n"+string(text))
}

// concepts has what several commands have in common: the topics of multilock help.
func concepts() string {
	var b strings.Builder
	b.WriteString("% multilock 7\n\n# NAME\n\nmultilock - locks, lists of jobs, variables and exit codes of multilock(1)\n\n")
	for _, topic := range help.Topics() {
		fmt.Fprintf(&b, "# %s\n\n%s\n", strings.ToUpper(strings.ReplaceAll(topic, "-", " ")), paragraphs(help.Topic(topic)))
	}
	b.WriteString("# SEE ALSO\n\nmultilock(1), multilock-protocol(7)\n")
	return b.String()
}

// writePage writes Markdown whose first line is the title.
func writePage(path, edition, markdown string) error {
	title, text, _ := strings.Cut(markdown, "\n")
	if err := os.WriteFile(path, md2man.Render([]byte(strings.TrimSpace(title+" "+edition)+"\n"+text)), 0o644); err != nil { //nolint:gosec // all may read it
		return fmt.Errorf("manual page: %w", err)
	}
	return nil
}

// page is that of a command, or of the program without one.
func page(app *cli.App, c *cli.Command) string {
	name, shown := options.Program, options.Of(options.Program)
	usage, synopsis, description := app.Usage, "multilock [OPTION...] COMMAND [OPTION...] [ARGUMENT...]", app.Description
	if c != nil {
		name, shown = "multilock-"+c.Name, options.Of(c.Name)
		usage, synopsis, description = c.Usage, "multilock "+c.Name+" "+c.ArgsUsage, c.Description
	}
	var b, commands, others strings.Builder
	fmt.Fprintf(&b, "%% %s 1\n\n# NAME\n\n%s - %s\n\n# SYNOPSIS\n\n    %s\n\n# DESCRIPTION\n\n%s\n", name, name, plain(usage), strings.TrimSpace(synopsis), paragraphs(description))
	for _, each := range documented(app) {
		fmt.Fprintf(&commands, "**%s**\n: %s; see multilock-%s(1)\n\n", strings.Join(each.Names(), ", "), plain(each.Usage), each.Name)
		if each != c {
			fmt.Fprintf(&others, ", multilock-%s(1)", each.Name)
		}
	}
	if c == nil {
		b.WriteString("# COMMANDS\n\n" + commands.String())
	}
	b.WriteString("# OPTIONS\n\n")
	for _, o := range shown {
		b.WriteString(option(o))
	}
	return b.String() + "# SEE ALSO\n\nmultilock(1)" + others.String() + ", multilock(7), multilock-protocol(7)\n"
}

// documented are the commands that have a page.
func documented(app *cli.App) []*cli.Command {
	return slices.DeleteFunc(app.VisibleCommands(), func(c *cli.Command) bool { return c.Name == command.HelpCommand })
}

// paragraphs makes Markdown of a help text: what is indented there stays as it is.
func paragraphs(text string) string {
	var b strings.Builder
	kept := false
	for line := range strings.SplitSeq(text, "\n") {
		indented := strings.HasPrefix(line, "  ") || line != "" && line[0] == '\t'
		if indented != kept && line != "" {
			b.WriteString("\n")
			kept = indented
		}
		if indented {
			b.WriteString("    " + line + "\n")
		} else {
			b.WriteString(plain(line) + "\n")
		}
	}
	return b.String()
}

// plain keeps Markdown from reading anything into a text.
func plain(text string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "<", `\<`, ">", `\>`, "[", `\[`, "]", `\]`, "`", "\\`", "#", `\#`).Replace(text)
}

// option is an entry in the list of options.
func option(o *options.Option) string {
	names, _ := strings.CutSuffix(o.Spellings(), " "+o.Word())
	entry := "**" + strings.ReplaceAll(names, ", ", "**, **") + "**"
	if o.TakesValue() {
		entry += " *" + o.Word() + "*"
	}
	return entry + "\n: " + plain(o.Text()) + "\n\n"
}
