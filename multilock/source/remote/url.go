package remote

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/multilock/go/multilock/source"
)

// URL is a server's URL. It is parsed by hand, because package url rejects several hosts and has
// the URL with its password in its errors. Its parts are not decoded.
type URL struct {
	Scheme, Hosts, Path, Query string
	Login                      string // USER:PASSWORD@, possibly only a part of it
	Public                     string // for messages: without the login and the parameters
}

// CutURL parses a URL with one of the schemes. form is the expected form, for the error. A URL
// whose password may contain unencoded special characters is rejected, and not repeated in the
// error.
func CutURL(text, form string, schemes ...string) (URL, error) {
	scheme, rest, found := strings.Cut(text, "://")
	if !found || !slices.Contains(schemes, scheme) {
		return URL{}, URL{}.Invalid("write " + form)
	}
	rest, query, _ := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	at := strings.LastIndex(authority, "@") + 1
	u := URL{Scheme: scheme, Login: authority[:at], Hosts: authority[at:], Path: path, Query: query}
	u.Public = scheme + "://" + u.Hosts + "/" + path
	unescaped := at == 0 && strings.Contains(query, "@") // a password with a question mark in it
	if u.Hosts == "" || strings.Contains(path, "@") || unescaped {
		return URL{}, URL{Public: scheme + "://..."}.Invalid("it has no host, or its password is not percent-encoded (write %2F for a slash, %3F for a question mark, %40 for an @)")
	}
	return u, nil
}

// Invalid returns the error that the URL cannot be used.
func (u URL) Invalid(why string) error {
	return &source.InvalidError{What: "source", Got: u.Public, Why: why}
}

// User returns the decoded login.
func (u URL) User() (name, password string, err error) {
	user, secret, _ := strings.Cut(strings.TrimSuffix(u.Login, "@"), ":")
	name, err = url.PathUnescape(user)
	password, bad := url.PathUnescape(secret)
	if err != nil || bad != nil {
		return "", "", u.Invalid("its user or password is not percent-encoded")
	}
	return name, password, nil
}

// Addresses returns the hosts, each with its port or the usual one.
func (u URL) Addresses(usualPort string) (addresses []string, err error) {
	for text := range strings.SplitSeq(u.Hosts, ",") {
		host, port, err := net.SplitHostPort(text)
		if err != nil {
			host, port = text, usualPort
			if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
				host = text[1 : len(text)-1]
			}
		}
		number, err := strconv.ParseUint(port, 10, 16)
		switch {
		case err != nil || number == 0:
			return nil, u.Invalid(fmt.Sprintf("the port of %q is no number from 1 to 65535", text))
		case host == "" || strings.Contains(host, ":") && net.ParseIP(host) == nil || strings.ContainsFunc(host, noHost):
			return nil, u.Invalid(fmt.Sprintf("%q is no host; write HOST, HOST:PORT or [IPv6]:PORT, with commas in between", text))
		}
		addresses = append(addresses, net.JoinHostPort(host, port))
	}
	return addresses, nil
}

// noHost matches characters that neither a host name nor an address has.
func noHost(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-._:", r)
}
