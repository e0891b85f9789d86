package etcdlock

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/multilock/go/multilock/source"
)

// DefaultTimeout is how long one operation may take, with all that is sent again. An election
// takes a second or two, and several on machines that are busy.
const DefaultTimeout = 30 * time.Second

const defaultPort = "2379"

// Place says where the locks live.
type Place struct {
	// URL is etcd://[USER:PASSWORD@]HOST[:PORT][,HOST...]/PREFIX, with a prefix for all keys.
	// Parameters: tls=true; cafile=, certfile= and keyfile= for certificates, servername= for
	// what the server's has to be for. No message repeats the password.
	URL string
	// Timeout is how long one operation may take, DefaultTimeout if 0.
	Timeout time.Duration
}

// address is a URL taken apart.
type address struct {
	endpoints      []string
	prefix         string
	user, password string
	public         string // for people: without the user, the password and the parameters
	secure         bool
	tls            *tls.Config // nil without TLS
}

func invalidURL(got, why string) error {
	return &source.InvalidError{What: "source", Got: got, Why: why}
}

// parseURL reads a URL, and the certificates that it names.
func parseURL(text string) (address, error) {
	rest, found := strings.CutPrefix(text, "etcd://")
	if !found {
		return address{}, invalidURL("", "write etcd://HOST[:PORT]/PREFIX")
	}
	rest, query, _ := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	at := strings.LastIndex(authority, "@") + 1
	hosts := authority[at:]
	a := address{public: "etcd://" + hosts + "/" + path}
	if hosts == "" || strings.Contains(path, "@") || at == 0 && strings.Contains(query, "@") {
		return address{}, invalidURL("etcd://...", "it has no host, or its password is not percent-encoded (write %2F for a slash, %3F for a question mark, %40 for an @)")
	}
	var err error
	if a.prefix, err = url.PathUnescape(strings.Trim(path, "/")); err != nil || !isPrefix(a.prefix) || strings.Contains(path, "#") {
		return address{}, invalidURL(a.public, "it must name a prefix for the keys, as in /jobs: up to 500 bytes of UTF-8, with no control characters (write %23 for a #)")
	}
	if err := a.readUser(strings.TrimSuffix(authority[:at], "@")); err != nil {
		return address{}, err
	}
	if err := a.readParameters(query); err != nil {
		return address{}, err
	}
	return a, a.readHosts(hosts)
}

func isPrefix(text string) bool {
	return text != "" && len(text) <= source.MaxElement && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

func (a *address) readUser(text string) (err error) {
	user, password, _ := strings.Cut(text, ":")
	a.user, err = url.PathUnescape(user)
	plain, bad := url.PathUnescape(password)
	if a.password = plain; err != nil || bad != nil {
		return invalidURL(a.public, "its user or password is not percent-encoded")
	}
	return nil
}

func (a *address) readHosts(hosts string) error {
	scheme := "http://"
	if a.secure {
		scheme = "https://"
	}
	for text := range strings.SplitSeq(hosts, ",") {
		host, port, err := net.SplitHostPort(text)
		if err != nil {
			host, port = text, defaultPort
			if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
				host = text[1 : len(text)-1]
			}
		}
		number, err := strconv.ParseUint(port, 10, 16)
		switch {
		case err != nil || number == 0:
			return invalidURL(a.public, fmt.Sprintf("the port of %q is no number from 1 to 65535", text))
		case host == "" || strings.Contains(host, ":") && net.ParseIP(host) == nil || strings.ContainsFunc(host, noHost):
			return invalidURL(a.public, fmt.Sprintf("%q is no host; write HOST, HOST:PORT or [IPv6]:PORT, with commas in between", text))
		}
		a.endpoints = append(a.endpoints, scheme+net.JoinHostPort(host, port))
	}
	return nil
}

// noHost finds what neither a name nor an address of a host has.
func noHost(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-._:", r)
}

// readParameters refuses what it does not know: it could be a misspelt tls.
func (a *address) readParameters(query string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return invalidURL(a.public, "its parameters cannot be read")
	}
	for key := range values {
		switch value := values.Get(key); key {
		case "cafile", "certfile", "keyfile", "servername":
			a.secure = true
		case "tls":
			if value != "true" && value != "false" {
				return invalidURL(a.public, "write tls=true or tls=false")
			}
			a.secure = a.secure || value == "true"
		default:
			return invalidURL(a.public, fmt.Sprintf("the parameter %q is unknown; there are tls, cafile, certfile, keyfile and servername", key))
		}
	}
	if a.secure && values.Get("tls") == "false" {
		return invalidURL(a.public, "tls=false contradicts the certificates that it names")
	}
	if !a.secure {
		return nil
	}
	if a.tls, err = readTLS(values); err != nil {
		return &source.InvalidError{What: "source", Got: a.public, Why: err.Error(), Err: err}
	}
	return nil
}

func readTLS(values url.Values) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: values.Get("servername")}
	if file := values.Get("cafile"); file != "" {
		text, err := os.ReadFile(file) //nolint:gosec // the user names it
		if err != nil {
			return nil, fmt.Errorf("read cafile: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("there is no certificate in %s", file)
		}
	}
	cert, key := values.Get("certfile"), values.Get("keyfile")
	if cert == "" && key == "" {
		return config, nil
	}
	if cert == "" || key == "" {
		return nil, errors.New("certfile and keyfile are needed together")
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("read the client's certificate: %w", err)
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}
