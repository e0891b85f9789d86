package place

import (
	"path/filepath"
	"slices"
	"strconv"

	"github.com/multilock/go/cmd/multilock/internal/console"
)

// LocatedError adds to an error the location of its lock, so that a message can quote a command to paste,
// and whether the user asked for quiet.
type LocatedError struct {
	Place Place
	Quiet bool
	Err   error
}

func (l *LocatedError) Error() string { return l.Err.Error() }
func (l *LocatedError) Unwrap() error { return l.Err }

// selector returns the options that select this source and group from any directory and on any host,
// whatever the environment there.
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

// Command returns a command line of this program for the same source and group, to paste into a
// shell. It uses the name by which the program was called: a build with another name may lack the
// source.
func (p *Place) Command(args ...string) string {
	return console.CommandLine(slices.Concat([]string{p.Program}, p.selector(), args))
}

// CommandForAll is Command for all groups of the source.
func (p *Place) CommandForAll(args ...string) string {
	all := *p
	all.Group = all.UsualGroup
	return all.Command(args...)
}

// Clearing returns the command that breaks a lock by force.
func (p *Place) Clearing(name, token string) string {
	return p.Command("break", argument(name), "--token", token, "--force")
}

// Forgetting returns the command that removes a result.
func (p *Place) Forgetting(name string) string {
	return p.Command("clean", "--results", argument(name))
}

// Printed returns the command that shows a job's output.
func (p *Place) Printed(name string) string { return p.Command("logs", argument(name)) }

// PrintedBy returns the command that shows the output of one run.
func (p *Place) PrintedBy(name string, run uint64) string {
	return p.Command("logs", argument(name), "--run", strconv.FormatUint(run, 10))
}

// argument returns a name in a form that does not parse as an option.
func argument(name string) string {
	if name[0] == '-' {
		return "--name=" + name
	}
	return name
}

// Absolute leaves a path unchanged if the working directory is unknown.
func Absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
