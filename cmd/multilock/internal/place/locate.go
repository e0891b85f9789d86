package place

import (
	"path/filepath"
	"slices"

	"github.com/multilock/go/cmd/multilock/internal/console"
)

// LocatedError knows the place of the lock that an error is about, so that a command in a
// message can be pasted as it is, and whether its user wants to hear of refusals.
type LocatedError struct {
	Place Place
	Quiet bool
	Err   error
}

func (l *LocatedError) Error() string { return l.Err.Error() }
func (l *LocatedError) Unwrap() error { return l.Err }

// selector is the options that select this source and group from any directory
// and on any host, whatever the environment says there.
func (p *Place) selector() []string {
	options := []string{"--source", p.Public()}
	if p.IsFiles() {
		options = []string{"-d", Absolute(p.Base)}
	}
	if p.Group != p.UsualGroup {
		options = append(options, "-g", p.Group)
	}
	if p.LegacyPeers {
		options = append(options, "--legacy-peers")
	}
	if p.Trust != "" {
		options = append(options, "--trust", p.Trust)
	}
	return options
}

// Command is a command of this program with these arguments, for the same source
// and group, for pasting into a shell. It has the name that the program was called by: one
// of another name may lack the source.
func (p *Place) Command(args ...string) string {
	return console.CommandLine(slices.Concat([]string{p.Program}, p.selector(), args))
}

// CommandForAll is the same for all groups of the source.
func (p *Place) CommandForAll(args ...string) string {
	all := *p
	all.Group = all.UsualGroup
	return all.Command(args...)
}

// Clearing is the command that breaks a lock, whoever holds it.
func (p *Place) Clearing(name, token string) string {
	return p.Command("break", argument(name), "--token", token, "--force")
}

// Forgetting is the command that removes a result.
func (p *Place) Forgetting(name string) string {
	return p.Command("clean", "--results", argument(name))
}

// Printed is the command that shows what a job has printed.
func (p *Place) Printed(name string) string { return p.Command("logs", argument(name)) }

// argument is a name that is not taken for an option.
func argument(name string) string {
	if name[0] == '-' {
		return "--name=" + name
	}
	return name
}

// Absolute leaves a path as it is if the working directory is not known any more.
func Absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
