package command

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/help"
)

// HelpCommand is the name of the command that explains the others.
const HelpCommand = "help"

// Help explains a command or a topic.
func Help(e *Env) *cli.Command {
	return &cli.Command{
		Name:        HelpCommand,
		Aliases:     []string{"h"},
		Usage:       "explain a command or a topic: " + strings.Join(help.Topics(), ", "),
		ArgsUsage:   "[COMMAND | TOPIC]",
		Description: "Explains a command with all its options, or one of the topics\n" + strings.Join(help.Topics(), ", ") + ".",
		Action: func(c *cli.Context) error {
			switch c.Args().Len() {
			case 0:
				return cli.ShowAppHelp(c)
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
	if err := cli.ShowCommandHelp(c, what); err != nil {
		return err
	}
	if slices.Contains(help.Topics(), command.Name) {
		return e.Print("%s", "\nTOPIC: "+strings.ToUpper(command.Name)+"\n\n"+help.Topic(command.Name))
	}
	return nil
}

// ShowShort shows a command, or the program, on one screen.
func ShowShort(e *Env, name string) error { return e.Print("%s", help.Short(name)) }

// Begin is for who has typed the program's name alone, or a script whose variable is empty.
func Begin(e *Env) error {
	e.Tell(help.Short(help.First))
	return console.Usagef("", "no command was given")
}
