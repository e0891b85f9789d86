package command

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/job"
)

// shell is the value of --shell: a program that runs a command after -c, and its options. The zero value is
// the system's shell.
type shell struct {
	words []string
	given bool
}

func (s *shell) String() string { return strings.Join(s.words, " ") }

func (s *shell) Set(text string) error {
	words := strings.Fields(text)
	if len(words) == 0 || strings.ContainsAny(text, "#'\"\\") {
		return errors.New("write the name of a shell and its options, without quotes, such as bash -o pipefail")
	}
	if *s = (shell{words, true}); len(words) == 1 && (words[0] == "sh" || words[0] == "/bin/sh") {
		s.words = nil
	}
	return nil
}

// args returns the arguments that run a command.
func (s *shell) args(command string) []string {
	if len(s.words) == 0 {
		return job.Shell(command)
	}
	return append(slices.Clone(s.words), "-c", command)
}

// shellLine selects the shell of a list: "SHELL bash -o pipefail".
const shellLine = "SHELL "

// isShellLine reports whether a line selects the shell. A program named SHELL is distinguished by a leading
// space or a path.
func isShellLine(text string) bool { return strings.HasPrefix(text, shellLine) }

// setShell parses a SHELL line.
func (l *batchList) setShell(line int32, text string) {
	before := l.shell.given
	err := l.shell.Set(strings.TrimPrefix(text, shellLine))
	switch {
	case err != nil:
		l.addProblem(line, fmt.Sprintf("%s: %v", strings.TrimSpace(shellLine), err))
	case before:
		l.addProblem(line, "a list has one line SHELL: remove this one")
	case len(l.jobs) > 0:
		l.addProblem(line, "SHELL is for all jobs of the list: write this line above the first one; a program of that name is called with a space before it")
	}
}

// shellOf chooses the shell for the commands, and checks that this host has it.
func (o *batchOptions) shellOf(list *batchList) error {
	switch {
	case !list.shell.given:
		list.shell = o.shell
	case o.shell.given && !slices.Equal(o.shell.words, list.shell.words):
		return console.Usagef("batch", "--shell differs from the line SHELL of the list: leave one of them out")
	}
	if len(list.shell.words) == 0 {
		return nil
	}
	name := list.shell.words[0]
	if _, err := exec.LookPath(name); err != nil {
		return console.Usagef("batch", "the shell %s cannot be run on this host: %w; install it, or name another one", name, err)
	}
	return nil
}
