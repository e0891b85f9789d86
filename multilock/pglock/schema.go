package pglock

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/multilock/go/multilock/source"
)

// schemaVersion is the version of the tables. Other versions are rejected.
const schemaVersion = 2

// tables are the statements that create the schema. Times are by the server's clock. Rows are
// small, and the fill factor leaves room for a second version of each on its page, as needed for
// heartbeats.
var tables = []string{
	`CREATE TABLE IF NOT EXISTS @meta (version int PRIMARY KEY)`,
	`CREATE TABLE IF NOT EXISTS @entry (
		key text COLLATE "C" PRIMARY KEY, value bytea NOT NULL, created bigint NOT NULL, changed bigint NOT NULL, version bigint NOT NULL DEFAULT 1,
		at timestamptz NOT NULL DEFAULT clock_timestamp(), seen timestamptz NOT NULL DEFAULT clock_timestamp(), beats bigint NOT NULL DEFAULT 1,
		server timestamptz NOT NULL DEFAULT pg_postmaster_start_time(), channel text, listener int, xid xid8 NOT NULL DEFAULT pg_current_xact_id()
	) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500)`,
	`CREATE INDEX IF NOT EXISTS entry_channel ON @entry (channel) WHERE channel IS NOT NULL`,
	`CREATE INDEX IF NOT EXISTS entry_fed ON @entry (xid, key) WHERE ` + fed,
	`CREATE SEQUENCE IF NOT EXISTS @revision`,
}

// fed selects the entries that a feed can read: those of the history.
const fed = `starts_with(key, 'history/')`

// grants returns the privileges that a user needs who did not create the tables.
func (s *server) grants() string {
	return fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %s; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %[1]s TO %[2]s; GRANT USAGE ON ALL SEQUENCES IN SCHEMA %[1]s TO %[2]s;",
		quoted(s.named), quoted(s.config.User))
}

// facts are the properties of the server.
type facts struct {
	version    int64 // such as 150004
	encoding   string
	committing string // synchronous_commit
}

// waits reports whether a commit waits for the disk, and for the standbys.
func (f facts) waits() bool { return f.committing == "on" || f.committing == "remote_apply" }

// ready checks whether the server can hold locks, before the first other request. With look it does
// not create the schema: without one the error is errUnmade.
func (s *server) ready(ctx context.Context, look bool) (facts, error) {
	return s.facts.Learn(ctx, func() (facts, error) {
		found, err := s.learn(ctx)
		if !has(err, noTable, noSchema) {
			return found, err
		}
		if err := s.create(ctx, look); err != nil {
			return found, err
		}
		return s.learn(ctx)
	})
}

func (s *server) learn(ctx context.Context) (f facts, err error) {
	answers, _, err := s.carryOut(ctx, 0, func() []statement {
		return []statement{s.sql(`SELECT ` + micros + `, current_setting('server_version_num'), current_setting('server_encoding'),
			current_setting('synchronous_commit'), max(version) FROM @meta`)}
	})
	if err != nil {
		return f, err
	}
	r := answers[0][0]
	s.clock.set(r.number(0))
	f = facts{version: r.number(1), encoding: r.text(2), committing: r.text(3)}
	switch {
	case f.encoding != "UTF8":
		return f, s.refuse("the database is encoded in " + f.encoding + ", which not every name fits into: use one in UTF8")
	case r.number(4) < schemaVersion:
		return f, s.refuse(fmt.Sprintf("the schema %s is that of an older multilock (version %d, this one needs %d): name another one with ?schema=, or drop it if nothing in it is needed", s.named, r.number(4), schemaVersion))
	case r.number(4) != schemaVersion:
		return f, s.refuse(fmt.Sprintf("the schema %s has version %d, and this multilock knows %d", s.named, r.number(4), schemaVersion))
	}
	return f, nil
}

func (s *server) refuse(why string) error {
	return &source.InvalidError{What: "source", Got: s.public, Why: why}
}

// oldest is the first version with pg_visible_in_snapshot, which feed needs.
const oldest = 130000

// create creates the schema, or its missing parts, in one transaction. Concurrent calls wait for
// each other. With look it only checks whether the schema could be created.
func (s *server) create(ctx context.Context, look bool) error {
	answers, _, err := s.carryOut(ctx, 0, func() []statement {
		return []statement{s.sql(`SELECT to_regnamespace($1) IS NOT NULL, current_setting('server_version_num'), has_database_privilege(current_database(), 'CREATE')`, quoted(s.named))}
	})
	if err != nil {
		return err
	}
	there := answers[0][0]
	switch {
	case there.number(1) < oldest:
		return s.refuse("PostgreSQL before 13 cannot be used")
	case look && (there.is(0) || there.is(2)):
		return errUnmade
	}
	steps := []statement{s.sql(`SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, "multilock "+s.named)}
	// After waiting for another process that created the schema, the session may have cached its
	// absence until it opens a table.
	steps = append(steps, statement{text: `SELECT FROM pg_namespace LIMIT 1`})
	if !there.is(0) {
		steps = append(steps, statement{text: "CREATE SCHEMA IF NOT EXISTS " + quoted(s.named)})
	}
	for _, text := range tables {
		steps = append(steps, s.sql(text))
	}
	steps = append(steps, s.sql(fmt.Sprintf(`INSERT INTO @meta (version) VALUES (%d) ON CONFLICT DO NOTHING`, schemaVersion)))
	if _, _, err = s.carryOut(ctx, 0, func() []statement { return steps }); has(err, notAllowed) {
		script := fmt.Sprintf("CREATE SCHEMA IF NOT EXISTS %s; GRANT USAGE, CREATE ON SCHEMA %[1]s TO %s;", quoted(s.named), quoted(s.config.User))
		return s.refuse(fmt.Sprintf("the user %s may not create its schema; ask an administrator to run this in the database %s: %s", s.config.User, s.config.Database, script))
	}
	return err
}

// errUnmade means that there is no schema.
var errUnmade = errors.New("the schema was never made")

// writable rejects a server that takes no writes, so that the next host of the URL is tried. Newer
// servers report that in their parameters.
func writable(ctx context.Context, conn *pgconn.PgConn) error {
	switch {
	case conn.ParameterStatus("in_hot_standby") == "on":
		return errStandby
	case conn.ParameterStatus("default_transaction_read_only") == "on":
		return errReading
	case conn.ParameterStatus("in_hot_standby") != "":
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, connecting)
	defer cancel()
	results, err := conn.Exec(ctx, "SELECT pg_is_in_recovery(), current_setting('transaction_read_only')").ReadAll()
	switch {
	case err != nil:
		return err
	case string(results[0].Rows[0][0]) == "t":
		return errStandby
	case string(results[0].Rows[0][1]) == "on":
		return errReading
	}
	return nil
}
