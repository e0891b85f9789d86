package cloudshell

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// Options say which reservation the locks live in, and how its server is reached.
// Server, Reservation, and either Token or User are needed.
type Options struct {
	// Server is the host, with DefaultPort or a port of its own.
	Server string
	// Scheme is https, or http where nobody in between could read the password or change
	// an answer; https if empty.
	Scheme string
	// Proxy is the URL of an HTTP proxy on the way to the server, http://[USER:PASSWORD@]HOST[:PORT]
	// or the same with https; none if zero, whatever the environment says. https goes
	// through it from end to end.
	Proxy Secret
	// CAFile has the certificates that vouch for the server, in PEM; those of the
	// system if empty. Insecure accepts any certificate: then whoever is in between
	// can read the password.
	CAFile   string
	Insecure bool

	// Token is that of a running command; it ends with the command. It is used
	// rather than User and Password.
	Token    Secret
	User     string
	Password Secret
	// Domain is where to log on, DefaultDomain if empty.
	Domain string

	// Reservation is the id of the reservation.
	Reservation string
	// Group is a prefix of the locks' aliases. With "", a lock's name is its alias.
	Group string
	// Model is the service model of the locks, DefaultModel if empty; Attribute the
	// one of its attributes that names the owner, DefaultAttribute if empty. With a
	// model that has none locks are plain: see docs/cloudshell.md.
	Model, Attribute string

	// Pause is how long to wait between two attempts at a lock.
	Pause Pause
	// Timeout is for each request, DefaultTimeout if 0.
	Timeout time.Duration
	// MaxResponse is the largest answer that is read, in bytes, DefaultMaxResponse if 0.
	MaxResponse int64
	// OldDetails leaves out the word that keeps a server from answering out of its
	// cache, for servers so old that they do not know it.
	OldDetails bool
	// Self is who the calling process is; found out if zero. For tests.
	Self process.Identity
	// Transport is the way to the server, instead of connections of its own. For tests.
	Transport http.RoundTripper
}

// Pause is a time drawn evenly from Least to Most. The zero value stands for 2 to
// 5 seconds, as scripts do it.
type Pause struct{ Least, Most time.Duration }

// The defaults.
const (
	DefaultPort      = 8029
	DefaultDomain    = "Global"
	DefaultModel     = "Mutex Service"
	DefaultAttribute = "Mutex Owner"
	// DefaultName is the lock that scripts mean.
	DefaultName        = "MUTEX"
	DefaultTimeout     = 30 * time.Second
	DefaultMaxResponse = 32 << 20

	schemeHTTP  = "http"
	schemeHTTPS = "https"
)

// check validates the options as a whole and fills in the defaults.
func (o Options) check() (Options, error) {
	o = o.withDefaults()
	switch {
	case o.Server == "":
		return o, invalid("server", "", "must not be empty")
	case o.Scheme != schemeHTTP && o.Scheme != schemeHTTPS:
		return o, invalid("scheme", o.Scheme, "must be http or https")
	case o.Scheme == schemeHTTP && (o.Insecure || o.CAFile != ""):
		return o, invalid("scheme", o.Scheme, "has no certificates; use https")
	case o.Reservation == "":
		return o, invalid("reservation", "", "must not be empty; it is the id that the portal shows in the sandbox's address")
	case o.Token.IsZero() && o.User == "":
		return o, invalid("user", "", "must not be empty without a token: CloudShell has to know who asks; write USER@ before the host, or put the token of a running command into "+EnvToken)
	case o.Timeout < 0 || o.MaxResponse < 0 || o.Pause.Least < 0 || o.Pause.Most < o.Pause.Least:
		return o, invalid("option", "timeout, size or pause", "must be positive, and the least pause not above the most")
	}
	if _, err := o.proxy(); err != nil {
		return o, err
	}
	var err error
	if o.Server, err = withPort(o.Server); err != nil {
		return o, err
	}
	if o.Self == (process.Identity{}) {
		if o.Self, err = process.Self(); err != nil {
			return o, opError("find out who this process is", "", err)
		}
	}
	return o, nil
}

func (o Options) withDefaults() Options {
	o.Scheme = cmp.Or(o.Scheme, schemeHTTPS)
	o.Domain = cmp.Or(o.Domain, DefaultDomain)
	o.Model = cmp.Or(o.Model, DefaultModel)
	o.Attribute = cmp.Or(o.Attribute, DefaultAttribute)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.MaxResponse = cmp.Or(o.MaxResponse, DefaultMaxResponse)
	o.Pause = cmp.Or(o.Pause, Pause{Least: 2 * time.Second, Most: 5 * time.Second})
	return o
}

// proxy is nil if there is none.
func (o Options) proxy() (*url.URL, error) {
	if o.Proxy.IsZero() {
		return nil, nil //nolint:nilnil // as http.Transport wants it
	}
	u, err := url.Parse(o.Proxy.reveal())
	if err != nil || u.Scheme != schemeHTTP && u.Scheme != schemeHTTPS || u.Hostname() == "" {
		return nil, invalid("proxy", "...", "write http://HOST:PORT") // err has its password
	}
	return u, nil
}

// withPort gives a host its port. HTTPS is on the same one.
func withPort(server string) (string, error) {
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		host, port = strings.Trim(server, "[]"), strconv.Itoa(DefaultPort)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil || host == "" || strings.ContainsAny(host, "/?#@ ") {
		return "", invalid("server", server, "write HOST or HOST:PORT")
	}
	return net.JoinHostPort(host, port), nil
}

func invalid(what, got, why string) error {
	return &source.InvalidError{What: "cloudshell " + what, Got: got, Why: why}
}

// Secret is a password or a token. It does not show itself in messages, logs or
// JSON, whatever verb they use. It is comparable with itself only.
type Secret struct{ text *string } // a pointer, because fmt shows the fields of unexported fields without asking

// NewSecret keeps text.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{&text}
}

// reveal is for the request that needs it.
func (s Secret) reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// hidden stands for a secret.
const hidden = "[secret]"

// IsZero says whether there is no secret.
func (s Secret) IsZero() bool { return s.text == nil }

// String does not tell.
func (s Secret) String() string { return hidden }

// Format implements fmt.Formatter: no verb tells.
func (s Secret) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, hidden) }

// MarshalText implements encoding.TextMarshaler, and so serves JSON.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// scrub removes the secret from a text, such as an error that a server wrote.
func (s Secret) scrub(text string) string {
	if s.IsZero() {
		return text
	}
	return strings.ReplaceAll(text, s.reveal(), hidden)
}
