package pglock

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

var (
	errClosed  = errors.New("the source was closed")
	errStandby = errors.New("this server is a standby, which takes no writes")
	errReading = errors.New("this server takes no writes from this user, or from any user (default_transaction_read_only)")
)

// The codes of PostgreSQL's errors (https://www.postgresql.org/docs/current/errcodes-appendix.html).
const (
	readOnly    = "25006"
	badUser     = "28000"
	badPassword = "28P01"
	noDatabase  = "3D000"
	noSchema    = "3F000"
	notAllowed  = "42501"
	noTable     = "42P01"
	noColumn    = "42703"
	diskFull    = "53100"
	tooMany     = "53300"
	canceled    = "57014"
)

// codeOf returns the code of a server's error, "" for other errors.
func codeOf(err error) string {
	var told *pgconn.PgError
	if errors.As(err, &told) {
		return told.Code
	}
	return ""
}

func has(err error, codes ...string) bool {
	code := codeOf(err)
	return code != "" && slices.Contains(codes, code)
}

// inDoubt reports whether statements may have taken effect, or may do so later. Those that the
// server rejected have not; but a server that is shutting down may report that after it has
// committed.
func inDoubt(err error) bool {
	if err == nil || errors.Is(err, errClosed) || errors.Is(err, source.ErrInvalid) || errors.As(err, new(*pgconn.ConnectError)) {
		return false
	}
	code := codeOf(err)
	return code == "" || strings.HasPrefix(code, "57P") || strings.HasPrefix(code, "08")
}

// passes reports whether another try makes sense: the error may be temporary. Temporary are
// conflicts of transactions, a server without free resources, and one that is no longer the
// primary.
func passes(err error) bool {
	var unconnected *pgconn.ConnectError
	code := codeOf(err)
	switch {
	case err == nil || errors.Is(err, errClosed) || errors.Is(err, source.ErrInvalid):
		return false
	case code == "":
		return !errors.As(err, &unconnected) || !isMisdialed(err)
	case has(err, readOnly, canceled):
		return true
	}
	return slices.ContainsFunc([]string{"08", "40", "53", "57P", "58"}, func(class string) bool { return strings.HasPrefix(code, class) })
}

// isElsewhere reports that the connection works, but leads to a server that takes no writes.
func isElsewhere(err error) bool { return has(err, readOnly) }

// unreachable reports whether the server was never reached.
func (s *server) unreachable(err error) bool {
	return !s.answered.Load() && (errors.As(err, new(*pgconn.ConnectError)) || errors.Is(err, context.DeadlineExceeded))
}

// isMisdialed reports whether the server was reached but the connection is useless: it takes no
// writes, or the TLS settings of client and server do not match.
func isMisdialed(err error) bool {
	return errors.Is(err, errReading) || remote.SaysOfTLS(err.Error())
}

// OpError implements remote.Store. It adds a hint.
func (s *server) OpError(ctx context.Context, op, name string, err error) error {
	if errors.As(err, new(*source.OpError)) {
		return err
	}
	hint, passing := s.hint(err), passes(err)
	if errors.As(err, new(*pgconn.ConnectError)) {
		err = &remote.Unreachable{Ways: ways(err), Err: err}
	}
	return remote.OpError(ctx, source.OpError{Source: pkg, Op: op, Name: name, Err: err, Hint: hint, Passing: passing})
}

// ways lists the driver's connection attempts without duplicates. Its error has a line for each.
func ways(err error) string {
	_, text, _ := strings.Cut(err.Error(), "`:")
	var ways []string
	for way := range strings.SplitSeq(text, "\n") {
		if way = strings.TrimSpace(way); way != "" && !slices.Contains(ways, way) {
			ways = append(ways, way)
		}
	}
	return strings.Join(ways, "; ")
}

func (s *server) hint(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, errStandby):
		return "name the primary; or all servers of the cluster, with commas in between: the one that takes writes is found"
	case has(err, badPassword):
		return "check the user and the password; a password belongs into the environment or a file"
	case has(err, badUser):
		return "the server does not accept this kind of connection: check the user, sslmode, and its pg_hba.conf"
	case has(err, noDatabase):
		return "the database has to be there; the tables are made"
	case has(err, notAllowed):
		return "the user needs these: " + s.grants()
	case has(err, noTable, noColumn, noSchema):
		return "the schema is not as this multilock has made it: see https://github.com/multilock/go/blob/main/docs/postgres.md"
	case has(err, diskFull):
		return "the server's disk is full: make room there; waiting processes go on then"
	case has(err, tooMany):
		return "the server has no room for more connections: raise max_connections, or put PgBouncer in between"
	case has(err, canceled):
		return "the server gives a statement too little time (statement_timeout)"
	case remote.SaysOfTLS(err.Error()):
		return remote.TLSWords{
			Off: "turn it on there (ssl), or write sslmode=disable", Authority: "sslrootcert=FILE", Name: "write sslmode=verify-ca",
			Client: "sslcert=FILE and sslkey=FILE", All: "sslmode, sslrootcert, sslcert and sslkey",
		}.Advice(err.Error())
	case passes(err):
		return "is the server running, and can this host reach it?"
	}
	return ""
}
