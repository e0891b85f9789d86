//go:build !no_postgres

package place

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/pglock"
)

// openPostgres does not require a password: many servers need none for some users, and the driver finds
// those that other programs use.
func openPostgres(_ context.Context, e *console.Env, p Place) (multilock.Source, error) {
	full, err := p.FullURL(e)
	if err != nil {
		return nil, err
	}
	// The password may also come from ~/.pgpass.
	if config, _, _, err := pglock.Parse(full); err == nil && config.Password != "" && p.InClear != "" {
		return nil, errors.New(p.InClear)
	}
	return opened(pglock.Open(pglock.Options{Place: pglock.Place{URL: full}, Group: p.Group, User: p.User}))
}

// completePostgres fills in nothing: the driver does that, by the rules of all PostgreSQL clients.
func completePostgres(_ *console.Env, p *Place) error {
	config, _, _, err := pglock.Parse(p.URL.String())
	if err != nil {
		return nil //nolint:nilerr // left to pglock's error
	}
	w := way{encrypted: true, verified: true, toEncrypt: "add sslmode=verify-full to the URL", toVerify: "write sslmode=verify-full, with sslrootcert=FILE for a certificate of your own",
		accepted: slices.Contains(p.URL.parameters(), "sslmode=disable"), toAccept: "sslmode=disable"}
	ways := append([]*pgconn.FallbackConfig{{Host: config.Host, Port: config.Port, TLSConfig: config.TLSConfig}}, config.Fallbacks...)
	for _, each := range ways { // one without TLS may follow one with TLS
		w.hosts = append(w.hosts, net.JoinHostPort(each.Host, strconv.Itoa(int(each.Port))))
		w.encrypted = w.encrypted && each.TLSConfig != nil
		w.verified = w.verified && (each.TLSConfig == nil || !each.TLSConfig.InsecureSkipVerify || each.TLSConfig.VerifyPeerCertificate != nil)
	}
	p.Exposed, p.InClear = w.exposed(), w.inClear()
	return nil
}
