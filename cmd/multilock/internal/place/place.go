// Package place determines where locks live: it opens a source as given by the command line, the
// environment and the configuration files, and checks which sources support what a command needs. Its
// caller passes the environment, with its secrets.
package place

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/internal/span"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

var errUnescaped = errors.New("the end of its password is ambiguous; write %40 for an @ that is not the one before the host, %2F for a /, %3F for a ? and %23 for a #")

// Place is where locks live, with the lock's name and the user's.
type Place struct {
	Base        string  // the directory with the locks, if they are files
	URL         Address // of any other source
	Group, Name string
	GroupGiven  bool   // an option, the environment, a file or the URL names the group, or the source has none
	NameGiven   bool   // an option names the lock
	UsualGroup  string // the source's default group
	User        string // for people
	Program     string // the name by which it was called
	LegacyPeers bool
	TTL         time.Duration // from a configuration file; see UsualTTL
	Local       bool          // locks are meant for this host alone
	Capture     Capture       // as configured
	// RequireShared rejects a directory that doctor --mark has not marked.
	RequireShared bool
	Exposed       string // risks on the network path to the server, for people; "" without any
	InClear       string // why no password may be sent to the server; "" if it may
	Trust         string // the value of --trust
	Token         string // from EnvCloudshellToken, only set by WithPassword
}

// Find determines where the locks live.
func (k Kinds) Find(a Asked, e *console.Env) (Place, error) {
	p := Place{Program: cmp.Or(e.Program, "multilock"), User: userName(e), NameGiven: a.Name != nil}
	s, err := gather(a, e)
	if err != nil {
		return p, err
	}
	if a.Name != nil {
		p.Name = *a.Name
	}
	if err := p.apply(s); err != nil {
		return p, err
	}
	if err := p.locate(k, s, e.Getenv(EnvSource)); err != nil {
		return p, err
	}
	return p, p.complete(k, s, e)
}

// apply applies the settings that need no source.
func (p *Place) apply(s settings) error {
	p.Group, p.Trust = s.group.value, s.trust.value
	if s.ttl.value != "" {
		p.TTL, _ = span.Parse(s.ttl.value) // checked before
	}
	p.Capture.On = s.capture.value == "true"
	p.Capture.Keep, _ = strconv.Atoi(s.captureKeep.value) // checked before
	if s.captureSize.value != "" {
		_ = p.Capture.Size.Set(s.captureSize.value) // checked before
	}
	var errs [3]error
	p.LegacyPeers, errs[0] = s.legacyPeers.isOn()
	p.Local, errs[1] = s.local.isOn()
	p.RequireShared, errs[2] = s.requireShared.isOn()
	return errors.Join(errs[:]...)
}

// errNowhere prevents locks in the directory in which cron happens to start a job.
var errNowhere = errors.New("no lock directory: give -d DIRECTORY, which all hosts share (-d . for this one), or set " + EnvDir + "; see: multilock help locks")

// locate parses the directory or the URL.
func (p *Place) locate(k Kinds, s settings, fromEnv string) error {
	given := s.source.value
	switch {
	case given == "":
		return errNowhere
	case s.isDir:
		p.Base = given
		return nil
	}
	url := given
	if s.source.typed() && fromEnv != "" && publicURL(fromEnv) == given {
		url = fromEnv // a pasted command works in a shell whose environment has the secrets
	}
	if err := p.useURL(k, url); err != nil {
		return fmt.Errorf("%s %q: %w", strings.TrimPrefix(s.source.from, "$"), publicURL(url), err)
	}
	if a, ok := parseAddress(given); ok && s.source.typed() && a.scheme != fileScheme && a.hasSecrets() {
		return fmt.Errorf("--source %s: it contains a secret, which all users of this host can read with ps; leave it out there, and %s", a.public(), passwordPlaces)
	}
	return nil
}

// useURL parses a source's URL.
func (p *Place) useURL(k Kinds, text string) error {
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
		p.URL = a
		err = a.checkFiles()
	}
	return err
}

// complete rejects options that the source does not support, and fills in defaults.
func (p *Place) complete(k Kinds, s settings, e *console.Env) error {
	kind, err := k.of(p.scheme())
	if err != nil {
		return err
	}
	if !kind.Groups {
		if s.group.typed() {
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
	p.GroupGiven = p.Group != "" || !kind.Groups
	p.UsualGroup = kind.Group
	p.Group, p.Name = cmp.Or(p.Group, kind.Group), cmp.Or(p.Name, fslock.DefaultName)
	if !p.IsFiles() {
		if s.legacyPeers.typed() && p.LegacyPeers {
			return errors.New("--legacy-peers: the Python MultiLock knows no other locks than those of a directory (-d)")
		}
		p.LegacyPeers = false
	}
	return p.checkDirectoryOnly(s)
}

// checkDirectoryOnly rejects options that only apply to locks in a directory.
func (p *Place) checkDirectoryOnly(s settings) error {
	if !strings.HasSuffix(p.scheme(), fileScheme) {
		switch {
		case s.trust.typed():
			return fmt.Errorf("--trust: %s has users of its own; it is for locks in a directory", p.Public())
		case s.requireShared.typed() && p.RequireShared:
			return fmt.Errorf("--require-shared: all hosts see the same %s; it is for locks in a directory", p.Public())
		}
		p.Trust, p.RequireShared = "", false
	}
	_, err := readTrust(p.Trust)
	return err
}

// IsFiles reports whether the locks live in a directory.
func (p *Place) IsFiles() bool { return p.URL.scheme == "" }

func (p *Place) scheme() string { return cmp.Or(p.URL.scheme, fileScheme) }

// Public returns where the locks live, without secrets.
func (p *Place) Public() string {
	switch {
	case !p.IsFiles():
		return p.URL.public()
	case p.Base == "":
		return ""
	}
	return Absolute(p.Base)
}

// UsualTTL returns the TTL of a lock without --ttl; 0 for the source's default.
func (p *Place) UsualTTL() time.Duration {
	if strings.HasPrefix(p.scheme(), "cook+") {
		return 0
	}
	return p.TTL
}
