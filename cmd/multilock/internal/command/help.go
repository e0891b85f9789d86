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
		Usage:     "explain a command or a topic",
		ArgsUsage: "[COMMAND | TOPIC]",
		Description: `Explains a command completely, or a topic:

   batch         lists of jobs: format, output, retries, resources
   environment   the variables that multilock reads, and those that a job gets
   exit-codes    the meaning of exit codes
   filesystems   where locks are safe
   hooks         commands and reports at the end of a run
   locks         where locks are, holders, takeover, hanging holders
   output        the output of a run: --quiet-success, --log, --capture
   schedule      --once, --every, missed ticks, retries
   sources       servers that can store the locks: etcd, PostgreSQL, S3
   waiting       --wait, --fair, --shared, --probe

"multilock help COMMAND" is COMMAND --help with all details.`,
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

// Names returns the names of the listed commands.
func Names(app *cli.App) (names []string) {
	for _, each := range app.VisibleCommands() {
		names = append(names, each.Name)
	}
	return names
}

func explain(c *cli.Context, e *Env, what string) error {
	command := c.App.Command(what)
	if command == nil || command.Hidden {
		if text := help.Topic(what); text != "" {
			return e.Print("%s", text)
		}
		if meant := console.Nearest(what, append(help.Topics(), Names(c.App)...)); meant != "" {
			return console.Usagef(HelpCommand, "there is no command and no topic %q; did you mean %q?", what, meant)
		}
		return console.Usagef(HelpCommand, "there is no command and no topic %q; the topics are %s, and multilock -h lists the commands", what, strings.Join(Topics(c.App), ", "))
	}
	text := Long(c.App, command)
	if more := help.Topic(command.Name); more != "" {
		text += "\nDETAILS\n\n" + more
	}
	return e.Print("%s", text)
}

// Short returns the short help of a command, or of the program, which fits on a screen: the usage, the first
// paragraph of the description, the most important options, and the examples below that paragraph.
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
	text := fmt.Sprintf("usage: multilock%s %s\n%s\n", place, strings.TrimSpace(c.Name+" "+c.ArgsUsage), options.Wrap(intro))
	for _, part := range []string{options.Short(c.Name), strings.ReplaceAll("\n"+examples, "\n   ", "\n  ")} {
		if part = strings.Trim(part, "\n"); part != "" {
			text += "\n" + part + "\n"
		}
	}
	if !more && len(options.Of(c.Name)) == 0 {
		return text
	}
	text += "\nAll options: multilock " + c.Name + " --help"
	if help.Topic(c.Name) != "" {
		text += "; everything: multilock help " + c.Name
	}
	return text + "\n"
}

// Long returns the full help of a command, or of the program: the usage, all options and some examples.
// Topics have more; a topic can have the name of a command.
func Long(app *cli.App, c *cli.Command) string {
	if c == nil {
		text := fmt.Sprintf("multilock - %s\n\nusage: multilock [OPTION...] COMMAND [OPTION...] [ARGUMENT...]\n\n%s\n\nCOMMANDS\n", app.Usage, options.Wrap(app.Description))
		for _, each := range app.VisibleCommands() {
			text += fmt.Sprintf("   %-12s  %s\n", strings.Join(each.Names(), ", "), each.Usage)
		}
		return text + "\n" + options.Long(options.Program) + "\n" + options.Wrap("Topics (multilock help TOPIC): "+strings.Join(Topics(app), ", ")) + "\n"
	}
	intro, more, _ := strings.Cut(c.Description, "\n\n")
	text := fmt.Sprintf("multilock %s - %s\n\nusage: %s\n\n%s\n", c.Name, c.Usage, strings.TrimSpace("multilock "+c.Name+" "+c.ArgsUsage), options.Wrap(intro))
	all := options.Of(c.Name)
	if len(all) > 0 {
		text += "\n" + options.Long(c.Name)
	}
	if slices.ContainsFunc(all, func(o *options.Option) bool { return o.Word() == "DURATION" }) {
		text += "\nA DURATION is 90s, 5m, 2h30m, 1d, or a number of seconds.\n"
	}
	if more != "" {
		text += "\n" + options.Wrap(more) + "\n"
	}
	if also := seeAlso(c.Name); also != "" {
		text += "\n" + also + "\n"
	}
	return text
}

// Topics returns the topics except those named after a command, which are shown below its help.
func Topics(app *cli.App) []string {
	return slices.DeleteFunc(help.Topics(), func(topic string) bool { return slices.Contains(Names(app), topic) })
}

// seeAlso names the topics with more about a command.
func seeAlso(command string) string {
	topics := help.About(command)
	if len(topics) == 0 {
		return ""
	}
	return options.Wrap("More: multilock help " + strings.Join(topics, ", "))
}

// Begin handles a command line without a command, such as from a script with an empty variable.
func Begin(e *Env) error {
	e.Tell(help.First())
	return console.Usagef("", "no command was given")
}
