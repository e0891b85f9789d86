package command

import (
	"embed"
	"io/fs"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
)

//go:embed completion
var completions embed.FS

// Completion prints a shell's completion script.
func Completion(e *Env) *cli.Command {
	return &cli.Command{
		Name: "completion", Usage: "print completions for bash, zsh or fish", ArgsUsage: "bash|zsh|fish",
		Description: `Prints a script that completes commands, options, and the names of locks.

   source <(multilock completion bash)         in ~/.bashrc
   source <(multilock completion zsh)          in ~/.zshrc, after compinit
   multilock completion fish | source          in ~/.config/fish/config.fish

Names come from the directory of -d and -g, or of the environment. Completion waits
at most two seconds for a file server. It runs the multilock in PATH, even if you
type another one, such as ./multilock.`,
		Action: func(c *cli.Context) error {
			if err := e.check(c); err != nil {
				return err
			}
			script, err := fs.ReadFile(completions, "completion/"+c.Args().First())
			if c.Args().Len() != 1 || strings.Contains(c.Args().First(), "/") || err != nil {
				return console.Usagef("completion", "for which shell? bash, zsh or fish")
			}
			return e.Print("%s", script)
		},
	}
}
