package cloudshell

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Location is a parsed URL: a reservation, and the default name of the lock.
type Location struct {
	Options
	Name string
}

// EnvToken is the environment variable with the token of a running command, for a driver, which has
// no contexts in its environment.
const EnvToken = "MULTILOCK_CLOUDSHELL_TOKEN"

// Locate parses a URL of the form
//
//	cloudshell://USER@HOST:PORT/RESERVATION?domain=Global&alias=MUTEX
//
// In a script that CloudShell runs, missing parts are taken from the contexts in environ (see
// os.Environ): there "cloudshell:" is enough. A user or token is taken from a context only for the
// context's own server. A URL without a user gets the token of EnvToken in environ, for any server.
// docs/cloudshell.md has all parameters. No error contains a password.
func Locate(text string, environ []string) (Location, error) {
	public := text
	if i := strings.LastIndexByte(text, '@'); i >= 0 {
		public = "cloudshell://..." + text[i:] // the part before may contain a password
	}
	u, err := url.Parse(text) // its error has the password in it
	if err != nil || u.Scheme != "cloudshell" || u.Opaque != "" || u.Fragment != "" {
		return Location{}, invalid("URL", public, "write cloudshell://USER@HOST/RESERVATION")
	}
	l := Location{Name: DefaultName}
	l.Server, l.User = u.Host, u.User.Username()
	password, _ := u.User.Password()
	l.Password, l.Reservation = NewSecret(password), strings.Trim(u.Path, "/")
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return Location{}, invalid("URL", "?...", "has parameters that cannot be read; separate them with &, and percent-encode what is special in them")
	}
	for key, all := range values {
		if len(all) != 1 || all[0] == "" {
			return Location{}, invalid("URL parameter", key, "must be given once, and not be empty")
		}
		if err := l.parameter(key, all[0]); err != nil {
			return Location{}, err
		}
	}
	l.Options, err = fromContexts(l.Options, environ)
	return l, err
}

// parameter parses a parameter. An unknown one is an error, because it could be a misspelled lock.
func (l *Location) parameter(key, value string) error {
	texts := map[string]*string{
		"domain": &l.Domain, "alias": &l.Name, "model": &l.Model, "attribute": &l.Attribute, "group": &l.Group, "scheme": &l.Scheme, "cafile": &l.CAFile,
	}
	if target := texts[key]; target != nil {
		*target = value
		return nil
	}
	var err error
	switch key {
	case "insecure":
		l.Insecure, err = strconv.ParseBool(value)
	case "timeout":
		l.Timeout, err = time.ParseDuration(value)
	case "pause":
		l.Pause, err = parsePause(value)
	default:
		return invalid("URL parameter", key, "is unknown; there are domain, alias, model, attribute, group, scheme, cafile, insecure, timeout and pause")
	}
	if err != nil {
		return invalid("URL parameter "+key, value, "cannot be read")
	}
	return nil
}

func parsePause(text string) (Pause, error) {
	least, most, _ := strings.Cut(text, "-")
	from, err := time.ParseDuration(least)
	to, bad := time.ParseDuration(cmp.Or(most, least))
	if err != nil || bad != nil || to <= 0 || from > to {
		return Pause{}, errors.New("no range")
	}
	return Pause{from, to}, nil
}

// fromContexts fills in missing options from the contexts that CloudShell passes to the scripts
// that it runs. Setup and teardown scripts get RESERVATIONLIFECYCLECONTEXT.
func fromContexts(opt Options, environ []string) (Options, error) {
	var server struct { // its tsAPIPort belongs to another API
		Server   string `json:"serverAddress"`
		Scheme   string `json:"tsAPIScheme"`
		User     string `json:"adminUser"`
		Password string `json:"adminPass"`
		Token    string `json:"adminAuthToken"`
	}
	var here struct{ ID, Domain string }
	var cycle struct {
		Reservation string `json:"reservationId"`
	}
	contexts := map[string]any{"QUALICONNECTIVITYCONTEXT": &server, "RESERVATIONCONTEXT": &here, "RESERVATIONLIFECYCLECONTEXT": &cycle}
	own := ""
	for _, entry := range environ {
		name, text, _ := strings.Cut(entry, "=")
		target := contexts[strings.ToUpper(name)]
		switch {
		case name == EnvToken:
			own = text
		case target == nil || text == "" || json.Unmarshal([]byte(text), target) == nil:
		// A domain before a user's name is written with a single backslash.
		case json.Unmarshal([]byte(strings.ReplaceAll(text, `\`, `\\`)), target) != nil:
			return opt, invalid("environment variable", name, "is not the JSON that CloudShell gives to scripts")
		}
	}
	if opt.User == "" && opt.Token.IsZero() {
		opt.Token = NewSecret(own)
	}
	if server.Server == "" || opt.Server != "" && hostOf(opt.Server) != hostOf(server.Server) {
		return opt, nil // its token must not be sent to another server
	}
	if opt.User == "" && opt.Token.IsZero() {
		opt.Token, opt.User = NewSecret(server.Token), server.User
		if opt.Password.IsZero() {
			opt.Password = NewSecret(server.Password)
		}
	}
	opt.Server = cmp.Or(opt.Server, server.Server)
	opt.Scheme = cmp.Or(opt.Scheme, strings.ToLower(server.Scheme))
	opt.Reservation = cmp.Or(opt.Reservation, here.ID, cycle.Reservation)
	opt.Domain = cmp.Or(opt.Domain, here.Domain)
	return opt, nil
}

func hostOf(server string) string { return strings.ToLower((&url.URL{Host: server}).Hostname()) }

// Secret is a password or a token. It is a pointer, so that printing a Secret does not reveal it.
// It is equal to itself only.
type Secret struct{ text *string }

// NewSecret returns the Secret of a text.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{&text}
}

// reveal returns the text, for the request that needs it.
func (s Secret) reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero reports whether there is no secret.
func (s Secret) IsZero() bool { return s.text == nil }

// scrub removes the secret from a text, such as a server's error message.
func (s Secret) scrub(text string) string {
	if s.IsZero() {
		return text
	}
	return strings.ReplaceAll(text, s.reveal(), "[secret]")
}
