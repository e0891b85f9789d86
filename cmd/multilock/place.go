package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/multilock/fslock"
)

// passwordPlaces says where a password belongs: what stands on a command line,
// everybody on the host can read with ps(1).
const passwordPlaces = "put it into the variable " + envPassword + ", or into a file that " + envPasswordFile + " names, or the whole URL into " + envSource

var errUnescaped = errors.New("it cannot be told where its password ends; write %40 for an @ that is not the one before the host, %2F for a /, %3F for a ? and %23 for a #")

// readPlace finds where the locks are to live. An option on the command line wins
// over the environment, -d as well as --source.
func (o *common) readPlace(c *cli.Context, e *env) error {
	dir, source := givenAt(c, "dir"), givenAt(c, "source")
	fromEnv := e.Getenv(envSource)
	o.base = cmp.Or(e.Getenv(envDir), ".")
	var err error
	switch {
	case dir != nil && source != nil:
		return console.Usagef(c.Command.Name, "-d and --source contradict each other: -d DIRECTORY stands for --source file:DIRECTORY; leave one of them out")
	case dir != nil:
		o.base = dir.String("dir")
	case source != nil:
		err = o.useURL(e, "--source", withSecretsOf(fromEnv, source.String("source")))
		if a, ok := parseAddress(source.String("source")); err == nil && ok && a.scheme != fileScheme && a.hasSecrets() {
			err = fmt.Errorf("--source %s: there is a secret in it, which everybody on this host can read with ps; leave it out there, and %s", a.public(), passwordPlaces)
		}
	case fromEnv != "":
		err = o.useURL(e, envSource, fromEnv)
	}
	if err != nil {
		return &console.UsageError{Command: c.Command.Name, Err: err}
	}
	return o.checkPlace(c, e)
}

// withSecretsOf is the URL of a command line, or the one of the environment if that
// is the same and has the secrets, too: so a command from a message can be pasted.
func withSecretsOf(fromEnv, given string) string {
	if fromEnv != "" && publicURL(fromEnv) == given {
		return fromEnv
	}
	return given
}

// useURL takes a source's URL apart. Option is where it comes from.
func (o *common) useURL(e *env, option, text string) error {
	a, ok := parseAddress(text)
	if !ok {
		a = address{}
	}
	if _, err := e.kindOf(a.scheme); err != nil {
		return fmt.Errorf("%s %q: %w", option, publicURL(text), err)
	}
	if a.scheme == fileScheme {
		base, err := filePath(text)
		if err != nil {
			return fmt.Errorf("%s %q: %w", option, publicURL(text), err)
		}
		o.base = base
		return nil
	}
	if a.ambiguous() {
		return fmt.Errorf("%s %q: %w", option, publicURL(text), errUnescaped)
	}
	o.base, o.url = "", a
	return nil
}

// checkPlace finds options that mean nothing to the source, and fills in what was
// left out. What the environment says may be meant for others.
func (o *common) checkPlace(c *cli.Context, e *env) error {
	kind, err := e.kindOf(o.scheme())
	if err != nil {
		return err
	}
	if !kind.groups {
		if givenAt(c, "group") != nil {
			return console.Usagef(c.Command.Name, "--group: there are no groups in %s", o.place())
		}
		o.group = ""
	}
	if kind.complete != nil {
		if err := kind.complete(e, o); err != nil {
			return &console.UsageError{Command: c.Command.Name, Err: o.withoutSecrets(e, err)}
		}
	}
	o.usualGroup = kind.group
	o.group, o.name = cmp.Or(o.group, kind.group), cmp.Or(o.name, fslock.DefaultName)
	if !o.isFiles() {
		if givenAt(c, "legacy-peers") != nil && o.legacyPeers {
			return console.Usagef(c.Command.Name, "--legacy-peers: the Python MultiLock knows no other locks than those of a directory (-d)")
		}
		o.legacyPeers = false
	}
	return nil
}

// isFiles says whether the locks live in a directory.
func (o *common) isFiles() bool { return o.url.scheme == "" }

func (o *common) scheme() string { return cmp.Or(o.url.scheme, fileScheme) }

// place is where the locks live, for people and for other programs.
func (o *common) place() string {
	if o.isFiles() {
		return o.base
	}
	return o.url.public()
}

// fullURL is the source's URL with the password of its user, wherever that is kept;
// without one if it is kept nowhere.
func (o *common) fullURL(e *env) (string, error) {
	full := o.url
	if full.user == "" || full.password != "" {
		return full.String(), nil
	}
	password, err := readPassword(e)
	if err != nil {
		return "", err
	}
	if password != "" {
		_, full.password, _ = strings.Cut(url.UserPassword("", password).String(), ":")
	}
	return full.String(), nil
}

func readPassword(e *env) (string, error) {
	path := e.Getenv(envPasswordFile)
	if password := e.Getenv(envPassword); password != "" || path == "" {
		return password, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the password from the file that %s names: %w", envPasswordFile, err)
	}
	password, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSuffix(password, "\r"), nil
}

// secretError keeps a password out of an error's text.
type secretError struct {
	err      error
	password string
}

func (s *secretError) Error() string { return strings.ReplaceAll(s.err.Error(), s.password, "...") }
func (s *secretError) Unwrap() error { return s.err }

// withoutSecrets is for the error of a library that was given the full URL.
func (o *common) withoutSecrets(e *env, err error) error {
	full, _ := o.fullURL(e)
	a, ok := parseAddress(full)
	if !ok || a.password == "" {
		return err
	}
	err = &secretError{err, a.password}
	if plain, bad := url.PathUnescape(a.password); bad == nil {
		err = &secretError{err, plain}
	}
	return err
}

// jobEnviron is what a job gets of our environment: all but what is secret. A job
// that uses the same source reads the password from the file that
// MULTILOCK_PASSWORD_FILE names.
func jobEnviron(environ []string) []string {
	var vars []string
	for _, entry := range environ {
		switch name, value, _ := strings.Cut(entry, "="); name {
		case envPassword:
		case envSource:
			vars = append(vars, name+"="+publicURL(value))
		default:
			vars = append(vars, entry)
		}
	}
	return vars
}
