package main

import (
	"errors"
	"github.com/multilock/go/cmd/multilock/internal/console"
	"path/filepath"
	"slices"
)

// locatedError knows which options select the lock that an error is about, so
// that a command in a message can be pasted as it is, and whether its user wants
// to hear of refusals.
type locatedError struct {
	options []string
	quiet   bool
	err     error
}

func (l *locatedError) Error() string { return l.err.Error() }
func (l *locatedError) Unwrap() error { return l.err }

// locate adds the selecting options to an error.
func (o *common) locate(err error) error {
	if err == nil {
		return nil
	}
	return &locatedError{options: o.selector(), quiet: o.quiet, err: err}
}

func quiet(err error) bool {
	var located *locatedError
	return errors.As(err, &located) && located.quiet
}

// selector is the options that select this source and group from any directory
// and on any host, whatever the environment says there.
func (o *common) selector() []string {
	options := []string{"--source", o.place()}
	if o.isFiles() {
		options = []string{"-d", absolute(o.base)}
	}
	if o.group != o.usualGroup {
		options = append(options, "-g", o.group)
	}
	if o.legacyPeers {
		options = append(options, "--legacy-peers")
	}
	return options
}

// command is a command of this program with these arguments, for the same source
// and group, for pasting into a shell.
func (o *common) command(args ...string) string {
	return console.CommandLine(slices.Concat([]string{"multilock"}, o.selector(), args))
}

// absolute leaves a path as it is if the working directory is not known any more.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// clearing is the command that breaks a lock, for pasting into a shell.
func (l *locatedError) clearing(name, token string) string {
	args := append([]string{"multilock"}, l.options...)
	if name[0] == '-' {
		args = append(args, "break", "--name="+name)
	} else {
		args = append(args, "break", name)
	}
	return console.CommandLine(append(args, "--token", token, "--force"))
}
