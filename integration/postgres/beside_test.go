package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/pglab"
	"github.com/multilock/go/multilock"
)

// TestBesideAdvisoryLocks acquires and releases a lock repeatedly, with multilock and with PostgreSQL's
// own pg_advisory_lock in turns. Both cost the same requests, although an advisory lock ends with its
// session and is unknown to standbys.
func TestBesideAdvisoryLocks(t *testing.T) {
	s := pglab.Start(t, pglab.Options{})
	proxy := pglab.NewProxy(t, s.Address, 0)
	ctx := within(t)
	src := open(t, proxy.Address, schema(), "")
	session, err := pgconn.Connect(ctx, pglab.URL(proxy.Address, ""))
	require.NoError(t, err)
	defer session.Close(ctx)
	ask := func(text string) error { return session.ExecParams(ctx, text, nil, nil, nil, nil).Read().Err }
	ways := map[string]func() error{
		"multilock": func() error {
			return multilock.Do(ctx, src, "nightly", multilock.Options{}, func(context.Context) error { return nil })
		},
		"pg_advisory_lock": func() error {
			if err := ask("SELECT pg_advisory_lock(4711)"); err != nil {
				return err
			}
			return ask("SELECT pg_advisory_unlock(4711)")
		},
	}
	const cycles, rounds = 20, 20
	requests, took := map[string]int{}, map[string]time.Duration{"multilock": time.Hour, "pg_advisory_lock": time.Hour}
	for round := range 1 + rounds {
		for name, cycle := range ways {
			before, start := proxy.Requests(), time.Now()
			for range cycles {
				require.NoError(t, cycle(), name)
			}
			if round == 0 {
				continue // connects, and creates the schema
			}
			took[name] = min(took[name], time.Since(start)/cycles) // the machine may be busy with something else
			requests[name] += proxy.Requests() - before
		}
	}
	require.Equal(t, map[string]int{"multilock": 2 * rounds * cycles, "pg_advisory_lock": 2 * rounds * cycles}, requests)
	t.Logf("a cycle takes %s, that of an advisory lock %s", took["multilock"], took["pg_advisory_lock"])
}
