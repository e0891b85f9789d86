package main

import (
	"strings"

	"github.com/multilock/go/multilock/fslock"
)

// locatedError knows which options select the lock that an error is about, so
// that a command in a message can be pasted as it is.
type locatedError struct {
	options string
	err     error
}

func (l *locatedError) Error() string { return l.err.Error() }
func (l *locatedError) Unwrap() error { return l.err }

// locate adds the selecting options to an error.
func (o *common) locate(err error) error {
	if err == nil {
		return nil
	}
	return &locatedError{o.selector(), err}
}

// selector is the options that select this source and group again.
func (o *common) selector() string {
	var options []string
	switch {
	case o.source != "":
		options = append(options, "--source", o.source)
	case o.base != ".":
		options = append(options, "-d", o.base)
	}
	if o.group != fslock.DefaultGroup {
		options = append(options, "-g", o.group)
	}
	if len(options) == 0 {
		return ""
	}
	return strings.TrimSpace(commandLine(options)) + " "
}
