//go:build manual

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cpuguy83/go-md2man/v2/md2man"
	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/command"
	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/help"
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
	pages := map[string]page{"multilock.1": ofProgram(app)}
	for _, each := range app.Commands {
		if !each.Hidden && each.Name != "help" {
			pages["multilock-"+each.Name+".1"] = ofCommand(each)
		}
	}
	for name, p := range pages {
		if err := writePage(filepath.Join(dir, name), edition, p.markdown(app)); err != nil {
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

// page is what a manual page consists of.
type page struct {
	name, usage, synopsis, description string
	flags                              []cli.Flag
	commands                           []*cli.Command
}

func ofProgram(app *cli.App) page {
	return page{app.Name, app.Usage, "multilock [OPTION...] COMMAND [OPTION...] [ARGUMENT...]", app.Description, app.Flags, app.Commands}
}

func ofCommand(c *cli.Command) page {
	synopsis := "multilock " + c.Name + " [OPTION...] " + c.ArgsUsage
	return page{"multilock-" + c.Name, c.Usage, synopsis, c.Description, c.Flags, nil}
}

func (p page) markdown(app *cli.App) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%% %s 1\n\n# NAME\n\n%s - %s\n\n# SYNOPSIS\n\n    %s\n\n# DESCRIPTION\n\n%s\n", p.name, p.name, plain(p.usage), strings.TrimSpace(p.synopsis), paragraphs(p.description))
	if len(p.commands) > 0 {
		b.WriteString("# COMMANDS\n\n")
		for _, each := range p.commands {
			if !each.Hidden && each.Name != "help" {
				fmt.Fprintf(&b, "**%s**\n: %s; see multilock-%s(1)\n\n", strings.Join(each.Names(), ", "), plain(each.Usage), each.Name)
			}
		}
	}
	b.WriteString("# OPTIONS\n\n")
	for _, flag := range p.flags {
		b.WriteString(option(flag))
	}
	b.WriteString("# SEE ALSO\n\nmultilock(1)")
	for _, each := range app.Commands {
		if !each.Hidden && each.Name != "help" && "multilock-"+each.Name != p.name {
			fmt.Fprintf(&b, ", multilock-%s(1)", each.Name)
		}
	}
	b.WriteString(", multilock(7), multilock-protocol(7)\n")
	return b.String()
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
func option(flag cli.Flag) string {
	documented, ok := flag.(cli.DocGenerationFlag)
	visible, known := flag.(cli.VisibleFlag)
	if !ok || known && !visible.IsVisible() {
		return ""
	}
	before, rest, named := strings.Cut(documented.GetUsage(), "`")
	value, after, _ := strings.Cut(rest, "`")
	usage := before + value + after
	if !documented.TakesValue() {
		value = ""
	} else if !named {
		value = "VALUE"
	}
	var names []string
	for _, name := range flag.Names() {
		dashed := "**" + dashes("-"+name) + "**"
		if value != "" {
			dashed += " *" + value + "*"
		}
		names = append(names, dashed)
	}
	if text := documented.GetDefaultText(); text != "" && documented.TakesValue() && !strings.Contains(usage, "(default: ") {
		usage += " (default: " + text + ")"
	}
	return strings.Join(names, ", ") + "\n: " + plain(usage) + "\n\n"
}
