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

// forRelease returns the commands that only a release build needs (go run -tags manual). Other builds omit
// them, because the formatter adds half a megabyte.
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

// writeManual writes a page for the program, for each command, and for the protocol, from the texts of --help
// and docs/. Their footer has the edition.
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
	if err := writePage(filepath.Join(dir, "multilock.7"), edition, concepts(app)); err != nil || protocol == "" {
		return err
	}
	text, err := os.ReadFile(protocol)
	if err != nil {
		return fmt.Errorf("the protocol: %w", err)
	}
	return writePage(filepath.Join(dir, "multilock-protocol.7"), edition, "% multilock-protocol 7\n\n# NAME\n\nmultilock-protocol - the bytes on disk, and the steps\n\n"+string(text))
}

// concepts returns a page with the topics of "multilock help" that are about several commands.
func concepts(app *cli.App) string {
	var b strings.Builder
	b.WriteString("% multilock 7\n\n# NAME\n\nmultilock - locks, schedules, variables and exit codes of multilock(1)\n\n")
	for _, topic := range command.Topics(app) {
		b.WriteString(section(topic))
	}
	b.WriteString("# SEE ALSO\n\nmultilock(1), multilock-protocol(7)\n")
	return b.String()
}

// writePage formats Markdown whose first line is the title, and writes it to a file.
func writePage(path, edition, markdown string) error {
	title, text, _ := strings.Cut(markdown, "\n")
	if err := os.WriteFile(path, md2man.Render([]byte(strings.TrimSpace(title+" "+edition)+"\n"+text)), 0o644); err != nil { //nolint:gosec // all may read it
		return fmt.Errorf("manual page: %w", err)
	}
	return nil
}

// page returns the manual page of a command, or of the program.
func page(app *cli.App, c *cli.Command) string {
	name, shown := options.Program, options.Of(options.Program)
	usage, synopsis, description := app.Usage, "multilock [OPTION...] COMMAND [OPTION...] [ARGUMENT...]", app.Description
	if c != nil {
		name, shown = "multilock-"+c.Name, options.Of(c.Name)
		usage, synopsis, description = c.Usage, "multilock "+c.Name+" "+c.ArgsUsage, c.Description
	}
	topics := help.About("")
	if c != nil {
		topics = help.About(c.Name)
	}
	var b, commands, others strings.Builder
	fmt.Fprintf(&b, "%% %s 1\n\n# NAME\n\n%s - %s\n\n# SYNOPSIS\n\n    %s\n\n# DESCRIPTION\n\n%s\n", name, name, plain(usage), strings.TrimSpace(synopsis), paragraphs(description))
	if c != nil && help.Topic(c.Name) != "" {
		b.WriteString(paragraphs(help.Topic(c.Name)) + "\n")
		topics = topics[1:]
	}
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
	for _, topic := range topics {
		b.WriteString(section(topic))
	}
	return b.String() + "# SEE ALSO\n\nmultilock(1)" + others.String() + ", multilock(7), multilock-protocol(7)\n"
}

// section formats a topic of "multilock help".
func section(topic string) string {
	return fmt.Sprintf("# %s\n\n%s\n", strings.ToUpper(strings.ReplaceAll(topic, "-", " ")), paragraphs(help.Topic(topic)))
}

// documented returns the commands that have a page.
func documented(app *cli.App) []*cli.Command {
	return slices.DeleteFunc(app.VisibleCommands(), func(c *cli.Command) bool { return c.Name == command.HelpCommand })
}

// paragraphs converts a help text to Markdown, and keeps indented lines unchanged.
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

// plain escapes the special characters of Markdown.
func plain(text string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "<", `\<`, ">", `\>`, "[", `\[`, "]", `\]`, "`", "\\`", "#", `\#`).Replace(text)
}

// option formats an entry in the list of options.
func option(o *options.Option) string {
	names, _ := strings.CutSuffix(o.Spellings(), " "+o.Word())
	entry := "**" + strings.ReplaceAll(names, ", ", "**, **") + "**"
	if o.TakesValue() {
		entry += " *" + o.Word() + "*"
	}
	return entry + "\n: " + plain(o.Text()) + "\n\n"
}
