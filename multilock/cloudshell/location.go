package cloudshell

import (
	"errors"
	"fmt"
	"net/url"
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
// token is taken from there only for the context's own server. Parameters are
// domain, alias, model, attribute, group, scheme (http or https), cafile,
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
		return invalid("URL", "?"+query, "has parameters that cannot be read")
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
	case "insecure":
		l.Insecure, err = strconv.ParseBool(value)
	case "olddetails":
		l.OldDetails, err = strconv.ParseBool(value)
	case "timeout":
		l.Timeout, err = time.ParseDuration(value)
	case "pause":
		l.Pause, err = parsePause(value)
	default:
		return invalid("URL parameter", key, "is unknown; there are domain, alias, model, attribute, group, scheme, cafile, insecure, olddetails, timeout and pause")
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
