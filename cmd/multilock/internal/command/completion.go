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

// Completion is the command "completion", which prints what a shell needs to complete
// multilock's command lines.
func Completion(e *Env) *cli.Command {
	return &cli.Command{
		Name: "completion", Usage: "print what bash, zsh or fish need for completion", ArgsUsage: "bash|zsh|fish",
		Description: `Prints a script that completes commands, options, and the names of locks.

   source <(multilock completion bash)         in ~/.bashrc
   source <(multilock completion zsh)          in ~/.zshrc, after compinit
   multilock completion fish | source          in ~/.config/fish/config.fish

Names are looked up where -d and -g, or the environment, say; a file server that does
not answer within two seconds is not waited for. A key that is pressed runs the multilock
in PATH, even if another one is typed, such as ./multilock.`,
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
