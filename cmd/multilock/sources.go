package main

import (
	"context"
	"errors"
	"net/url"
	"os/user"
	"strings"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/process"
)

// source is what the commands need of a lock source.
type source interface {
	multilock.Group
	multilock.Changes
	multilock.Journal
	multilock.Register
	Append(context.Context, multilock.Event) error
	Leftovers(context.Context) ([]fslock.Leftover, error)
	Sweep(context.Context) ([]fslock.Leftover, error)
	Self() process.Identity
	Base() string
	Group() string
	LogPath(name string) string
	Close() error
}

// openSource opens the source that the options name. This is the only place that
// knows all sources.
func openSource(o common) (source, error) {
	base, err := o.files()
	if err != nil {
		return nil, err
	}
	return openFiles(o, base)
}

// files is the base directory of the source if that is a shared filesystem.
func (o *common) files() (string, error) {
	scheme, rest, found := strings.Cut(o.source, ":")
	switch {
	case o.source == "":
		return o.base, nil
	case !found || scheme != "file" || rest == "":
		return "", usagef("", "--source %q: unknown kind of source; this multilock knows file:DIRECTORY", o.source)
	}
	return filePath(rest)
}

func openFiles(o common, base string) (source, error) {
	s, err := fslock.Open(fslock.Options{Base: base, Group: o.group, LegacyPeers: o.legacyPeers, User: o.user})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// filePath takes file:PATH, file:///PATH and file://localhost/PATH.
func filePath(rest string) (string, error) {
	if !strings.HasPrefix(rest, "//") {
		return rest, nil
	}
	u, err := url.Parse("file:" + rest)
	if err != nil || (u.Host != "" && u.Host != "localhost") {
		return "", usagef("", "--source file:%s: write file:///absolute/path or file:relative/path", rest)
	}
	return u.Path, nil
}

// userName names the user for people.
func userName(e *env) string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return e.getenv("USER")
}

// closeSource joins what closing says to an error.
func closeSource(s source, err error) error { return errors.Join(err, s.Close()) }
