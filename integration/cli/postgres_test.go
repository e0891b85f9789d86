package cli_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/clitest"
	"github.com/multilock/go/integration/pglab"
)

// Everything else that a user sees of this source.
func TestPostgres(t *testing.T) {
	t.Parallel()
	s := postgresStation(t)
	holder := s.hold("-n", "x", "-g", "night")
	require.Contains(t, s.must("status", "-g", "night"), "x")
	require.Contains(t, s.must("report", "-g", "night", "-o", "-"), "<html")
	s.eventually("the history is written in the background", func() bool { return strings.Contains(s.must("history", "-g", "night"), "acquired") })
	require.Zero(t, holder.end().code)
	require.Equal(t, "ran\n", s.must("run", "--fair", "--wait", "1m", "-n", "x", "-g", "night", "--", "echo", "ran"))
	require.Equal(t, "ran\n", s.must("run", "--slots", "2", "--wait", "1m", "-n", "y", "-g", "night", "--", "echo", "ran"))
	require.Equal(t, "ran\n", s.must("run", "--every", "1d", "-n", "z", "--", "echo", "ran"))
	require.Empty(t, s.must("run", "--every", "1d", "-n", "z", "--", "echo", "ran"), "it ran today")
	require.Contains(t, clitest.OneLine(s.run("doctor").stdout), "while this server is down no lock can be acquired")
	require.Contains(t, s.must("run", "-n", "x", "--", "sh", "-c", "echo $MULTILOCK_SOURCE"), "postgres://ada@")
}

func TestPostgresTroubles(t *testing.T) {
	t.Parallel()
	access := "host all postgres 127.0.0.0/8 trust\nhost all ada 127.0.0.0/8 trust\nhost all all 127.0.0.0/8 scram-sha-256\n"
	server := pglab.Start(t, pglab.Options{Access: access})
	server.SQL("CREATE USER bob PASSWORD '" + password + "'; CREATE USER eve; CREATE TABLE important (x int)")
	at := func(user, rest string) string {
		return "MULTILOCK_SOURCE=postgres://" + user + "@" + server.Address + "/" + rest
	}
	for name, c := range map[string]struct {
		vars []string
		want string
	}{
		"no password":         {[]string{at("bob", "work")}, "check the user and the password"},
		"wrong password":      {[]string{at("bob", "work"), "MULTILOCK_PASSWORD=s3cret"}, "check the user and the password"},
		"wrong one in a URL":  {[]string{at("bob:s3cret%2F", "work")}, "check the user and the password"},
		"nobody listens":      {[]string{"MULTILOCK_SOURCE=postgres://ada@" + deaf(t) + "/work"}, "connection refused (is the server running, and can this host reach it?)"},
		"no database":         {[]string{at("ada", "nowhere")}, "the database has to be there; the tables are made"},
		"no name of one":      {[]string{at("ada", "")}, "it must name the database"},
		"unknown parameter":   {[]string{at("ada", "work?ssl=true")}, `the parameter "ssl" is unknown`},
		"no certificate":      {[]string{at("ada", "work?sslmode=verify-full&sslrootcert=/nowhere")}, "no such file"},
		"no TLS":              {[]string{at("ada", "work?sslmode=require")}, "the server speaks no TLS"},
		"not a schema":        {[]string{at("ada", "work?schema=pg_locks")}, "is no name of a schema"},
		"may not make tables": {[]string{at("bob", "work"), "MULTILOCK_PASSWORD=" + password}, `CREATE SCHEMA IF NOT EXISTS "multilock"; GRANT USAGE, CREATE ON SCHEMA "multilock" TO "bob";`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStation(t, append(slices.Clip(c.vars), "PGPASSFILE=/nowhere")...)
			s.requireTrouble(c.want)
		})
	}
}

// TestPostgresGrants: the statements suggested after a permission error are sufficient.
func TestPostgresGrants(t *testing.T) {
	t.Parallel()
	access := "host all ada 127.0.0.0/8 trust\nhost all all 127.0.0.0/8 scram-sha-256\n"
	server := pglab.Start(t, pglab.Options{Access: access})
	server.SQL("CREATE USER bob PASSWORD '" + password + "'")
	s := newStation(t, "MULTILOCK_SOURCE=postgres://bob@"+server.Address+"/work?schema=my+%22locks%22&sslmode=disable", "MULTILOCK_PASSWORD="+password)
	got := s.run("run", "-n", "x", "--", "true")
	require.Equal(t, 125, got.code)
	_, script, found := strings.Cut(got.stderr, "in the database work: ")
	require.True(t, found, got.stderr)
	server.SQL(script)
	require.Equal(t, "ran\n", s.must("run", "-n", "x", "--once", "--", "echo", "ran"))
	require.Empty(t, s.must("run", "-n", "x", "--once", "--", "echo", "ran"))
	got = s.run("doctor", "--json")
	require.NotContains(t, got.stdout, `"critical"`)
	require.Contains(t, got.stdout, "an asynchronous standby may lack it")
}
