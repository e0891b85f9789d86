package pglock

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

const (
	// DefaultTimeout is the time limit of one operation, including retries. A server that was
	// killed needs some seconds to restart.
	DefaultTimeout = 30 * time.Second
	// DefaultSchema is the schema of the tables.
	DefaultSchema = "multilock"
)

// Place is the location of the locks.
type Place struct {
	// URL is postgres://[USER[:PASSWORD]@]HOST[:PORT][,HOST...]/DATABASE[?schema=NAME]. It may have
	// those parameters of a PostgreSQL URL that configure the connection: sslmode, ... No message
	// repeats the password.
	URL string
	// Timeout is the time limit of one operation, DefaultTimeout if 0.
	Timeout time.Duration
}

const (
	form      = "postgres://USER@HOST[:PORT]/DATABASE"
	maxSchema = 63 // bytes of an identifier
)

// parameters are allowed in a URL, besides schema. An unknown parameter is rejected, because it
// could be a misspelt sslmode.
var parameters = []string{
	"application_name", "channel_binding", "connect_timeout", "host", "port", "require_auth",
	"sslcert", "sslkey", "sslmode", "sslnegotiation", "sslrootcert", "sslsni", "target_session_attrs",
}

// Parse parses a URL with the driver, including the files that it names, and the environment
// variables and files that all clients of PostgreSQL read.
func Parse(text string) (config *pgconn.Config, schema, public string, err error) {
	u, err := cut(text)
	if err != nil {
		return nil, "", "", err
	}
	schema = DefaultSchema
	var others []string
	for parameter := range strings.FieldsFuncSeq(u.Query, func(r rune) bool { return r == '&' }) {
		name, value, _ := strings.Cut(parameter, "=")
		value, bad := url.QueryUnescape(value)
		switch {
		case bad != nil:
			return nil, "", "", u.Invalid("the parameter " + name + " is not percent-encoded")
		case name == "schema":
			schema = value
		case !slices.Contains(parameters, name):
			return nil, "", "", u.Invalid(fmt.Sprintf("the parameter %q is unknown; there are schema, %s", name, strings.Join(parameters, ", ")))
		default:
			others = append(others, parameter)
		}
	}
	if schema == "" || len(schema) > maxSchema || !utf8.ValidString(schema) || strings.HasPrefix(schema, "pg_") || strings.Contains(schema, "\x00") {
		return nil, "", "", u.Invalid(fmt.Sprintf("%q is no name of a schema: write up to %d bytes, not beginning with pg_", schema, maxSchema))
	}
	config, err = configure(u, strings.Join(others, "&"))
	return config, schema, u.Public, err
}

// cut parses a URL, which may name its host in a parameter, as for a Unix socket.
func cut(text string) (remote.URL, error) {
	text, local := strings.CutPrefix(text, "postgres:///")
	if local {
		text = "postgres://" + socket + "/" + text
	}
	u, err := remote.CutURL(text, form, "postgres", "postgresql")
	if err != nil {
		return u, err
	}
	if local {
		u.Hosts, u.Public = "", strings.Replace(u.Public, socket, "", 1)
	}
	if u.Path == "" || strings.Contains(u.Path, "/") {
		return u, u.Invalid("it must name the database, as in " + form)
	}
	return u, nil
}

// socket is a placeholder for a missing host.
const socket = "socket"

// configure lets the driver parse the URL without the password, because its errors would repeat it.
func configure(u remote.URL, query string) (*pgconn.Config, error) {
	_, password, err := u.User()
	if err != nil {
		return nil, err
	}
	user, _, _ := strings.Cut(strings.TrimSuffix(u.Login, "@"), ":")
	if user != "" {
		user += "@"
	}
	config, err := pgconn.ParseConfig("postgres://" + user + u.Hosts + "/" + u.Path + "?" + query)
	if err != nil {
		why := err.Error()
		if cause := errors.Unwrap(err); cause != nil {
			why = cause.Error()
		}
		return nil, &source.InvalidError{What: "source", Got: u.Public, Why: why, Err: err}
	}
	config.Password = cmp.Or(password, config.Password)
	config.ConnectTimeout = cmp.Or(config.ConnectTimeout, connecting)
	config.RuntimeParams["application_name"] = cmp.Or(config.RuntimeParams["application_name"], "multilock")
	config.RuntimeParams["client_encoding"] = "UTF8"
	return config, nil
}
