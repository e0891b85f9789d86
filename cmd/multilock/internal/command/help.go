package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/help"
	"github.com/multilock/go/cmd/multilock/internal/options"
)

// HelpCommand is the name of the command that explains the others.
const HelpCommand = "help"

// Help explains a command or a topic.
func Help(e *Env) *cli.Command {
	return &cli.Command{
		Name:      HelpCommand,
		Aliases:   []string{"h"},
		Usage:     "explain a command, or a topic that several have in common",
		ArgsUsage: "[COMMAND | TOPIC]",
		Description: `Explains a command with all its options, as COMMAND --help does; or a topic:

   exit-codes    what the exit codes mean
   environment   the variables that multilock reads, and those that a job gets
   locks         where locks are, who holds one, and when it is taken over
   filesystems   on which locks are safe, and for whom
   batch         lists of jobs: their form, their output, after a crash`,
		Action: func(c *cli.Context) error {
			switch c.Args().Len() {
			case 0:
				return e.Print("%s", Long(c.App, nil))
			case 1:
				return explain(c, e, c.Args().First())
			}
			return console.Usagef(HelpCommand, "one command or topic at a time")
		},
	}
}

// Names are those of the commands that are listed.
func Names(app *cli.App) (names []string) {
	for _, each := range app.VisibleCommands() {
		names = append(names, each.Name)
	}
	return names
}

func explain(c *cli.Context, e *Env, what string) error {
	if text := help.Topic(what); text != "" && c.App.Command(what) == nil {
		return e.Print("%s", text)
	}
	command := c.App.Command(what)
	if command == nil || command.Hidden {
		if meant := console.Nearest(what, append(help.Topics(), Names(c.App)...)); meant != "" {
			return console.Usagef(HelpCommand, "there is no command and no topic %q; did you mean %q?", what, meant)
		}
		return console.Usagef(HelpCommand, "there is no command and no topic %q; the topics are %s, and multilock -h lists the commands", what, strings.Join(help.Topics(), ", "))
	}
	if err := e.Print("%s", Long(c.App, command)); err != nil {
		return err
	}
	if slices.Contains(help.Topics(), command.Name) {
		return e.Print("%s", "\nTOPIC: "+strings.ToUpper(command.Name)+"\n\n"+help.Topic(command.Name))
	}
	return nil
}

// Short is a command, or the program without one, on a screen: how to call it, the first paragraph
// of its description, the options that matter most, and the examples below that paragraph.
func Short(c *cli.Command) string {
	if c == nil {
		return help.Program()
	}
	place := ""
	if options.Find(c.Name, "dir").In != "" && len(options.Of(c.Name)) > 1 {
		place = " -d DIRECTORY"
	}
	intro, examples, _ := strings.Cut(c.Description, "\n\n")
	examples, _, more := strings.Cut(examples, "\n\n")
	if !strings.HasPrefix(examples, "   ") {
		examples = ""
	}
	text := fmt.Sprintf("usage: multilock%s %s\n%s\n", place, strings.TrimSpace(c.Name+" "+c.ArgsUsage), intro)
	for _, part := range []string{options.Short(c.Name), strings.ReplaceAll("\n"+examples, "\n   ", "\n  ")} {
		if part = strings.Trim(part, "\n"); part != "" {
			text += "\n" + part + "\n"
		}
	}
	if !more && len(options.Of(c.Name)) == 0 {
		return text
	}
	text += "\nmultilock " + c.Name + " --help says everything"
	if slices.Contains(help.Topics(), c.Name) {
		text += "; multilock help " + c.Name
	}
	return text + "\n"
}

// Long is all there is to say of a command, or of the program without one.
func Long(app *cli.App, c *cli.Command) string {
	if c == nil {
		text := manual("multilock", app.Usage, "multilock [OPTION...] COMMAND [OPTION...] [ARGUMENT...]", app.Description)
		text += "\nCOMMANDS:\n"
		for _, each := range app.VisibleCommands() {
			text += fmt.Sprintf("   %-12s  %s\n", strings.Join(each.Names(), ", "), each.Usage)
		}
		return text + "\nOPTIONS:\n" + options.Long(options.Program)
	}
	text := manual("multilock "+c.Name, c.Usage, strings.TrimSpace("multilock "+c.Name+" "+c.ArgsUsage), c.Description)
	all := options.Of(c.Name)
	if len(all) > 0 {
		text += "\nOPTIONS:\n" + options.Long(c.Name)
	}
	if slices.ContainsFunc(all, func(o *options.Option) bool { return o.Word() == "DURATION" }) {
		text += "\nA DURATION is 90s, 5m, 2h30m, 1d, or a number of seconds.\n"
	}
	return text
}

func manual(name, usage, synopsis, description string) string {
	return fmt.Sprintf("NAME:\n   %s - %s\n\nUSAGE:\n   %s\n\nDESCRIPTION:\n%s\n", name, usage, synopsis, options.Wrap(description))
}

// Begin is for a command line without a word, as of a script whose variable is empty.
func Begin(e *Env) error {
	e.Tell(help.First())
	return console.Usagef("", "no command was given")
}
