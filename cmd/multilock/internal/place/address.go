package place

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/multilock/go/cmd/multilock/internal/outfile"
)

// Address is a URL, split as in RFC 3986, appendix B, and no further: a list of hosts is accepted
// like one host, and no parse error has the password in its message.
type Address struct{ scheme, user, password, host, path, query, fragment string }

// urlParts is compiled on first use: most runs do not need it.
var urlParts = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?s)^([a-zA-Z][a-zA-Z0-9+.-]*):(?://(?:([^/?#:@]*)(?::([^/?#]*))?@)?([^/?#@]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?$`)
})

func parseAddress(text string) (Address, bool) {
	m := urlParts().FindStringSubmatch(text)
	emptyUser := m != nil && m[2]+m[3] == "" && strings.HasPrefix(m[5], "@") // x://@h@ has no canonical form
	if m == nil || emptyUser {
		return Address{}, false
	}
	return Address{strings.ToLower(m[1]), m[2], m[3], m[4], m[5], m[6], m[7]}, true
}

// ambiguous reports whether the apparent host and port may be the start of a user name and a password
// with an @, / or ? in them.
func (a Address) ambiguous() bool {
	return strings.Contains(a.host, ":") && strings.Contains(a.path+a.query+a.fragment, "@")
}

// String returns the whole URL without the fragment, which no source uses.
func (a Address) String() string {
	text := a.scheme + ":"
	if a.scheme == "" {
		return ""
	}
	if a.host != "" || a.user != "" || a.password != "" || strings.HasPrefix(a.path, "/") {
		text += "//"
	}
	if a.password != "" {
		text += a.user + ":" + a.password + "@"
	} else if a.user != "" {
		text += a.user + "@"
	}
	text += a.host + a.path
	if a.query != "" {
		text += "?" + a.query
	}
	return text
}

// MarshalText is String: the result has the secrets.
func (a Address) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText parses the output of MarshalText.
func (a *Address) UnmarshalText(text []byte) error {
	*a, _ = parseAddress(string(text)) // zero for a directory
	return nil
}

// public returns the URL without its secrets.
func (a Address) public() string {
	a.password = ""
	a.query = strings.Join(slices.DeleteFunc(a.parameters(), isSecret), "&")
	return a.String()
}

// parameters splits the query like MongoDB's driver, the most lenient of the drivers, so that no secret
// is missed.
func (a Address) parameters() []string {
	return strings.FieldsFunc(a.query, func(r rune) bool { return r == '&' || r == ';' })
}

// key returns the name of a parameter, in lower case; ok is false if it cannot be decoded.
func key(parameter string) (name string, ok bool) {
	escaped, _, _ := strings.Cut(parameter, "=")
	name, err := url.QueryUnescape(escaped)
	return strings.ToLower(name), err == nil
}

func hasKey(name string) func(parameter string) bool {
	return func(parameter string) bool {
		found, ok := key(parameter)
		return ok && found == name
	}
}

// checkFiles checks the files with certificates and keys that the URL names, before a driver reads them.
func (a Address) checkFiles() error {
	for _, parameter := range a.parameters() {
		name, _ := key(parameter)
		if !strings.HasSuffix(name, "file") && !slices.Contains([]string{"sslrootcert", "sslcert", "sslkey"}, name) {
			continue
		}
		_, escaped, _ := strings.Cut(parameter, "=")
		path, err := url.QueryUnescape(escaped)
		if err != nil || path == "" {
			continue // left to the driver's error
		}
		if err := outfile.Check(path); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// hasSecrets reports whether the URL has secrets.
func (a Address) hasSecrets() bool {
	return a.password != "" || slices.ContainsFunc(a.parameters(), isSecret)
}

// isSecret recognises a parameter with a secret by its name. A parameter whose name cannot be decoded
// counts as secret.
func isSecret(parameter string) bool {
	name, ok := key(parameter)
	return !ok || slices.ContainsFunc([]string{"pass", "pwd", "secret", "token", "apikey", "api_key", "credential", "authmechanismproperties"},
		func(part string) bool { return strings.Contains(name, part) })
}

// publicURL returns a URL without its secrets, for messages. If these cannot be separated, it returns
// only the scheme.
func publicURL(text string) string {
	a, ok := parseAddress(text)
	switch {
	case ok && a.scheme == fileScheme && a.password == "":
		return text
	case ok && !a.ambiguous():
		return a.public()
	}
	if scheme, rest, found := strings.Cut(text, ":"); found && strings.Contains(rest, "@") {
		return scheme + ":..."
	}
	return text
}
