// Package place finds out where locks live: it makes an opened source of what the command
// line and the environment say, and knows what each source lacks that a command needs. It
// gets the environment from its caller, with the secrets in it.
package place

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/outfile"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

// The variables that stand for options.
const (
	EnvDir         = "MULTILOCK_DIR"
	EnvGroup       = "MULTILOCK_GROUP"
	EnvSource      = "MULTILOCK_SOURCE"
	EnvLegacyPeers = "MULTILOCK_LEGACY_PEERS"
	EnvTrust       = "MULTILOCK_TRUST"
	EnvHistoryKeep = "MULTILOCK_HISTORY_KEEP"
	// The password of a source's user is nothing for a command line.
	EnvPassword     = "MULTILOCK_PASSWORD"
	EnvPasswordFile = "MULTILOCK_PASSWORD_FILE"
	EnvPing         = "MULTILOCK_PING"
	// The token of a running command of CloudShell's, likewise.
	EnvCloudshellToken = "MULTILOCK_CLOUDSHELL_TOKEN"
)

// passwordPlaces says where a password belongs: what stands on a command line,
// everybody on the host can read with ps(1).
const passwordPlaces = "put it into the variable " + EnvPassword + ", or into a file that " + EnvPasswordFile + " names, or the whole URL into " + EnvSource

var errUnescaped = errors.New("it cannot be told where its password ends; write %40 for an @ that is not the one before the host, %2F for a /, %3F for a ? and %23 for a #")

// Place is where locks live, which of them is meant, and who asks.
type Place struct {
	Base        string  // the directory with the locks, if they live in one
	URL         Address // of a source that is something else
	Group, Name string
	GroupGiven  bool   // an option, the environment, a file or the URL names the group, or the source has none
	NameGiven   bool   // an option names the lock
	UsualGroup  string // the group that the source means if none is named
	User        string // who asks, for people
	Program     string // by which name it is to be called
	LegacyPeers bool
	TTL         time.Duration // as a configuration says it; see UsualTTL
	Local       bool          // locks are meant for this host alone
	// RequireShared refuses a directory that doctor --mark has not marked.
	RequireShared bool
	Exposed       string // what others could do on the way to it, for people; nothing if it is ""
	InClear       string // why no password may go that way; one may if it is ""
	Trust         string // as --trust says it
	Token         string // of EnvCloudshellToken, in a place WithPassword
}

// Asked is what the command line says of a place; nil is what it does not say.
type Asked struct {
	Dir, Source, Group, Name, Trust *string
	LegacyPeers, RequireShared      *bool
}

// Find finds where the locks are to live. An option on the command line wins over the
// environment, -d as well as --source.
func (k Kinds) Find(a Asked, e *console.Env) (Place, error) {
	p := Place{Program: cmp.Or(e.Program, "multilock"), Base: e.Getenv(EnvDir), Group: e.Getenv(EnvGroup), User: userName(e)}
	if a.Group != nil {
		p.Group = *a.Group
	}
	if a.Name != nil {
		p.Name = *a.Name
	}
	usual, err := readConfig(e)
	if err != nil {
		return p, err
	}
	p.Trust = e.Getenv(EnvTrust)
	if a.Trust != nil {
		p.Trust = *a.Trust
	}
	if err := errors.Join(p.readLegacyPeers(a, e), p.readLocal(e)); err != nil {
		return p, err
	}
	if err := p.readRequireShared(a, usual, e); err != nil {
		return p, err
	}
	usual.apply(&p)
	if err := p.readSource(k, a, usual, e); err != nil {
		return p, err
	}
	return p, p.complete(k, a, e)
}

func (p *Place) readLegacyPeers(a Asked, e *console.Env) (err error) {
	text := e.Getenv(EnvLegacyPeers)
	switch {
	case a.LegacyPeers != nil:
		p.LegacyPeers = *a.LegacyPeers
	case text != "":
		if p.LegacyPeers, err = strconv.ParseBool(text); err != nil {
			return fmt.Errorf("%s=%q: write 1 or 0", EnvLegacyPeers, text)
		}
	}
	return nil
}

func (p *Place) readSource(k Kinds, a Asked, usual config, e *console.Env) error {
	fromEnv := e.Getenv(EnvSource)
	switch {
	case a.Dir != nil && a.Source != nil:
		return errors.New("-d and --source contradict each other: -d DIRECTORY stands for --source file:DIRECTORY; leave one of them out")
	case a.Dir != nil:
		p.Base = *a.Dir
	case a.Source != nil:
		if err := p.useURL(k, "--source", withSecretsOf(fromEnv, *a.Source)); err != nil {
			return err
		}
		if a, ok := parseAddress(*a.Source); ok && a.scheme != fileScheme && a.hasSecrets() {
			return fmt.Errorf("--source %s: there is a secret in it, which everybody on this host can read with ps; leave it out there, and %s", a.public(), passwordPlaces)
		}
	case fromEnv != "":
		return p.useURL(k, EnvSource, fromEnv)
	case p.Base != "":
	case usual.Source.value != "":
		return p.useURL(k, usual.Source.from+": source", usual.Source.value)
	case usual.Dir.value == "":
		return errNowhere
	default:
		p.Base = usual.Dir.value
	}
	return nil
}

// errNowhere keeps a lock from being taken in whatever directory cron has started in.
var errNowhere = errors.New("where are the locks? Write -d DIRECTORY, one that all hosts have mounted (-d . if this one is meant), or set " + EnvDir + "; see: multilock help locks")

// withSecretsOf is the URL of a command line, or the one of the environment if that
// is the same and has the secrets, too: so a command from a message can be pasted.
func withSecretsOf(fromEnv, given string) string {
	if fromEnv != "" && publicURL(fromEnv) == given {
		return fromEnv
	}
	return given
}

// useURL takes a source's URL apart. Option is where it comes from.
func (p *Place) useURL(k Kinds, option, text string) error {
	a, ok := parseAddress(text)
	if !ok {
		a = Address{}
	}
	_, err := k.of(a.scheme)
	switch {
	case err != nil:
	case a.scheme == fileScheme:
		p.Base, err = filePath(text)
	case a.ambiguous():
		err = errUnescaped
	default:
		p.Base, p.URL = "", a
		err = a.checkFiles()
	}
	if err != nil {
		return fmt.Errorf("%s %q: %w", option, publicURL(text), err)
	}
	return nil
}

// complete finds options that mean nothing to the source, and fills in what was left
// out. What the environment says may be meant for others.
func (p *Place) complete(k Kinds, a Asked, e *console.Env) error {
	kind, err := k.of(p.scheme())
	if err != nil {
		return err
	}
	if !kind.Groups {
		if a.Group != nil {
			return fmt.Errorf("--group: there are no groups in %s", p.Public())
		}
		p.Group = ""
	}
	if kind.Complete != nil {
		if err := kind.Complete(e, p); err != nil {
			return p.withoutSecrets(e, err)
		}
	}
	if err := errors.Join(source.CheckEnds("lock group", p.Group), source.CheckEnds("lock name", p.Name)); err != nil {
		return err
	}
	p.GroupGiven, p.NameGiven = p.Group != "" || !kind.Groups, a.Name != nil
	p.UsualGroup = kind.Group
	p.Group, p.Name = cmp.Or(p.Group, kind.Group), cmp.Or(p.Name, fslock.DefaultName)
	if !p.IsFiles() {
		if a.LegacyPeers != nil && p.LegacyPeers {
			return errors.New("--legacy-peers: the Python MultiLock knows no other locks than those of a directory (-d)")
		}
		p.LegacyPeers = false
	}
	return p.checkTrust(a)
}

// IsFiles says whether the locks live in a directory.
func (p *Place) IsFiles() bool { return p.URL.scheme == "" }

func (p *Place) scheme() string { return cmp.Or(p.URL.scheme, fileScheme) }

// Public is where the locks live, for people and for other programs.
func (p *Place) Public() string {
	if p.IsFiles() {
		return p.Base
	}
	return p.URL.public()
}

// FullURL is the source's URL with the password of its user, wherever that is kept;
// without one if it is kept nowhere.
func (p *Place) FullURL(e *console.Env) (string, error) {
	full := p.URL
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

func readPassword(e *console.Env) (string, error) {
	path := e.Getenv(EnvPasswordFile)
	if password := e.Getenv(EnvPassword); password != "" || path == "" {
		return password, nil
	}
	password, err := passwordIn(path)
	if err != nil {
		return "", fmt.Errorf("read the password from the file that %s names: %w", EnvPasswordFile, err)
	}
	return password, nil
}

// maxPassword bounds what is read of a file that may be anything.
const maxPassword = 64 << 10

// passwordIn is the first line of a file that only its owner can read.
func passwordIn(path string) (string, error) {
	f, err := outfile.Peek(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		err = checkPrivate(info)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxPassword))
	if err != nil {
		return "", err
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
func (p *Place) withoutSecrets(e *console.Env, err error) error {
	full, _ := p.FullURL(e)
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
