package etcdlock

import (
	"crypto/tls"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// DefaultTimeout is the time limit of one operation, including retries. An election takes a second
// or two, and several on busy machines.
const DefaultTimeout = 30 * time.Second

// Place is the location of the locks.
type Place struct {
	// URL is etcd://[USER:PASSWORD@]HOST[:PORT][,HOST...]/PREFIX, with a prefix for all keys.
	// Parameters: tls=true; cafile=, certfile= and keyfile= for certificates, servername= for the
	// name that the server's certificate must have. No message repeats the password.
	URL string
	// Timeout is the time limit of one operation, DefaultTimeout if 0.
	Timeout time.Duration
}

// address is a parsed URL.
type address struct {
	remote.URL
	endpoints      []string
	prefix         string
	user, password string
	tls            *tls.Config // nil without TLS
}

// parseURL parses a URL, and reads the certificates that it names.
func parseURL(text string) (a address, err error) {
	if a.URL, err = remote.CutURL(text, "etcd://HOST[:PORT]/PREFIX", "etcd"); err != nil {
		return a, err
	}
	if a.prefix, err = url.PathUnescape(strings.Trim(a.Path, "/")); err != nil || !isPrefix(a.prefix) || strings.Contains(a.Path, "#") {
		return a, a.Invalid("it must name a prefix for the keys, as in /jobs: up to 500 bytes of UTF-8, with no control characters (write %23 for a #)")
	}
	if a.user, a.password, err = a.User(); err != nil {
		return a, err
	}
	if a.tls, err = a.TLS(); err != nil {
		return a, err
	}
	addresses, err := a.Addresses("2379")
	for _, each := range addresses {
		scheme := "http://"
		if a.tls != nil {
			scheme = "https://"
		}
		a.endpoints = append(a.endpoints, scheme+each)
	}
	return a, err
}

func isPrefix(text string) bool {
	return text != "" && len(text) <= source.MaxElement && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}
