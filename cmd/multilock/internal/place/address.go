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

// Address is a URL, cut up as RFC 3986, appendix B, does it and no further: a list
// of hosts is as good as one, and nothing fails with the password in its message.
type Address struct{ scheme, user, password, host, path, query, fragment string }

// urlParts is compiled by who needs it: most runs do not.
var urlParts = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?s)^([a-zA-Z][a-zA-Z0-9+.-]*):(?://(?:([^/?#:@]*)(?::([^/?#]*))?@)?([^/?#@]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?$`)
})

func parseAddress(text string) (Address, bool) {
	m := urlParts().FindStringSubmatch(text)
	nobody := m != nil && m[2]+m[3] == "" && strings.HasPrefix(m[5], "@") // x://@h@: it has no form to be written down in
	if m == nil || nobody {
		return Address{}, false
	}
	return Address{strings.ToLower(m[1]), m[2], m[3], m[4], m[5], m[6], m[7]}, true
}

// ambiguous says that what looks like the host and its port may be the beginning of
// a user name and a password, with an @, / or ? in them.
func (a Address) ambiguous() bool {
	return strings.Contains(a.host, ":") && strings.Contains(a.path+a.query+a.fragment, "@")
}

// String is the whole URL, without the fragment: that means nothing to any source.
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

// MarshalText is String: the secrets are in it.
func (a Address) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (a *Address) UnmarshalText(text []byte) error {
	*a, _ = parseAddress(string(text)) // zero for a directory
	return nil
}

// public is the URL without its secrets.
func (a Address) public() string {
	a.password = ""
	a.query = strings.Join(slices.DeleteFunc(a.parameters(), isSecret), "&")
	return a.String()
}

// parameters cuts the query as MongoDB's driver does, which is the most lenient of those who
// read one: what it takes for a secret must not be missed here.
func (a Address) parameters() []string {
	return strings.FieldsFunc(a.query, func(r rune) bool { return r == '&' || r == ';' })
}

// key is the name of a parameter, in lower case; ok is false if nobody can read it.
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
			continue // the driver says what is wrong with it
		}
		if err := outfile.Check(path); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// hasSecrets says whether the URL has what nobody else should see.
func (a Address) hasSecrets() bool {
	return a.password != "" || slices.ContainsFunc(a.parameters(), isSecret)
}

// isSecret knows a parameter with a secret by its name, and takes one whose name cannot be
// read for that.
func isSecret(parameter string) bool {
	name, ok := key(parameter)
	return !ok || slices.ContainsFunc([]string{"pass", "pwd", "secret", "token", "apikey", "api_key", "credential", "authmechanismproperties"},
		func(part string) bool { return strings.Contains(name, part) })
}

// publicURL is a URL without its secrets, for messages. Of one that cannot be told
// apart from them nothing is left but what stands before the colon.
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
