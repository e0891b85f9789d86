package cloudshell

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Location is where a URL points: a reservation, and the lock that is meant where
// no name is given.
type Location struct {
	Options
	Name string
}

// Locate reads a URL of the form
//
//	cloudshell://USER@HOST:PORT/RESERVATION?domain=Global&alias=MUTEX
//
// What it leaves out comes, within a script or driver that CloudShell runs, from
// the contexts in environ (see os.Environ): there "cloudshell:" is enough. A user or
// token is taken from there only for the context's own server. A URL that names no user
// gets the token that EnvToken is in environ, which goes to whatever server is meant: so
// a driver, which has no contexts in its environment, hands on its own. Parameters are
// domain, alias, model, attribute, group, scheme (http or https), cafile, proxy,
// insecure=true, olddetails=true, timeout and pause (2s-5s, or one duration).
//
// A password may be part of the URL where nobody else can read that, which is not
// so on a command line; better set Options.Password. No error shows it.
func Locate(text string, environ []string) (Location, error) {
	u, err := url.Parse(text)
	if err != nil {
		return Location{}, invalid("URL", withoutUser(text), "is not a URL; write cloudshell://USER@HOST/RESERVATION") // err has the password in it
	}
	if u.Scheme != "cloudshell" || u.Opaque != "" || u.Fragment != "" {
		return Location{}, invalid("URL", withoutUser(text), "must look like cloudshell://USER@HOST/RESERVATION")
	}
	l := Location{Name: DefaultName}
	l.Server, l.User = u.Host, u.User.Username()
	if password, given := u.User.Password(); given {
		l.Password = NewSecret(password)
	}
	l.Reservation = strings.Trim(u.Path, "/")
	if err := l.parameters(u.RawQuery); err != nil {
		return Location{}, err
	}
	l.Options, err = fromContexts(l.Options, environ)
	return l, err
}

// withoutUser is a URL without what may be a password.
func withoutUser(text string) string {
	if i := strings.LastIndexByte(text, '@'); i >= 0 {
		return "cloudshell://..." + text[i:]
	}
	return text
}

// parameters reads the part behind the question mark. An unknown one is a mistake:
// it could be a misspelled lock.
func (l *Location) parameters(query string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return invalid("URL", "?...", "has parameters that cannot be read; separate them with &, and percent-encode what is special in them")
	}
	for key, all := range values {
		if len(all) != 1 || all[0] == "" {
			return invalid("URL parameter", key, "must be given once, and not be empty")
		}
		if err := l.parameter(key, all[0]); err != nil {
			return err
		}
	}
	return nil
}

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
	case "proxy":
		l.Proxy = NewSecret(value)
	case "insecure":
		l.Insecure, err = strconv.ParseBool(value)
	case "olddetails":
		l.OldDetails, err = strconv.ParseBool(value)
	case "timeout":
		l.Timeout, err = time.ParseDuration(value)
	case "pause":
		l.Pause, err = parsePause(value)
	default:
		return invalid("URL parameter", key, "is unknown; there are domain, alias, model, attribute, group, scheme, cafile, proxy, insecure, olddetails, timeout and pause")
	}
	if err != nil {
		return invalid("URL parameter "+key, value, "cannot be read")
	}
	return nil
}

func parsePause(text string) (Pause, error) {
	least, most, both := strings.Cut(text, "-")
	if !both {
		most = least
	}
	from, err := time.ParseDuration(least)
	to, bad := time.ParseDuration(most)
	if err := errors.Join(err, bad); err != nil {
		return Pause{}, err
	}
	if to <= 0 || from > to {
		return Pause{}, fmt.Errorf("from %s to %s is no range", from, to)
	}
	return Pause{from, to}, nil
}

// connectivity is what CloudShell tells the scripts that it runs about itself. Its
// tsAPIPort is another API's, and is not read.
type connectivity struct {
	Server   string `json:"serverAddress"`
	Scheme   string `json:"tsAPIScheme"`
	User     string `json:"adminUser"`
	Password string `json:"adminPass"`
	Token    string `json:"adminAuthToken"`
}

// reservationContext is about the reservation that the script runs in.
type reservationContext struct {
	ID     string `json:"id"`
	Domain string `json:"domain"`
}

// lifecycle is what scripts of setup and teardown get.
type lifecycle struct {
	Reservation string `json:"reservationId"`
}

// fromContexts fills in what the options leave out.
func fromContexts(opt Options, environ []string) (Options, error) {
	var server connectivity
	var here reservationContext
	var cycle lifecycle
	for name, target := range map[string]any{
		"QUALICONNECTIVITYCONTEXT": &server, "RESERVATIONCONTEXT": &here, "RESERVATIONLIFECYCLECONTEXT": &cycle,
	} {
		if err := readContext(environ, name, target); err != nil {
			return opt, err
		}
	}
	if token := lookup(environ, EnvToken); opt.User == "" && opt.Token.IsZero() {
		opt.Token = NewSecret(token)
	}
	if server.Server == "" || opt.Server != "" && hostOf(opt.Server) != hostOf(server.Server) {
		return opt, nil // its token is nothing for another server
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

// EnvToken is the variable with the token of a running command, for who has no contexts.
const EnvToken = "MULTILOCK_CLOUDSHELL_TOKEN"

// lookup is the value of a variable; the last one of a name counts.
func lookup(environ []string, name string) string {
	for _, entry := range slices.Backward(environ) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// readContext finds a variable, in whatever case its name is written.
func readContext(environ []string, name string, target any) error {
	for _, entry := range environ {
		key, text, _ := strings.Cut(entry, "=")
		if !strings.EqualFold(key, name) || text == "" {
			continue
		}
		if json.Unmarshal([]byte(text), target) == nil {
			return nil
		}
		// A domain before a user's name is written with a lone backslash.
		if json.Unmarshal([]byte(strings.ReplaceAll(text, `\`, `\\`)), target) != nil {
			return invalid("environment variable", key, "is not the JSON that CloudShell gives to scripts")
		}
		return nil
	}
	return nil
}

func hostOf(server string) string {
	host, _, err := net.SplitHostPort(server)
	if err != nil {
		host = server
	}
	return strings.ToLower(strings.Trim(host, "[]"))
}
