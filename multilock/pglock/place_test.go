package pglock

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/source"
)

func TestParse(t *testing.T) {
	t.Setenv("PGPASSFILE", "/nowhere")
	t.Setenv("PGPASSWORD", "")
	config, schema, public, err := Parse("postgresql://ada:s%2Fecret@db1:6543,db2/work?schema=my%20locks&sslmode=disable&application_name=cron")
	require.NoError(t, err)
	require.Equal(t, "my locks", schema)
	require.Equal(t, "postgresql://db1:6543,db2/work", public)
	require.Equal(t, []string{"ada", "s/ecret", "work", "db1"}, []string{config.User, config.Password, config.Database, config.Host})
	require.EqualValues(t, 6543, config.Port)
	require.Len(t, config.Fallbacks, 1)
	require.EqualValues(t, 5432, config.Fallbacks[0].Port)
	require.Equal(t, map[string]string{"application_name": "cron", "client_encoding": "UTF8"}, config.RuntimeParams)

	config, schema, _, err = Parse("postgres:///work?host=/run/postgresql")
	require.NoError(t, err)
	require.Equal(t, DefaultSchema, schema)
	require.Equal(t, "/run/postgresql", config.Host)
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"http://db/work":                                       "write postgres://",
		"postgres://db":                                        "it must name the database",
		"postgres://db/a/b":                                    "it must name the database",
		"postgres://ada:s/ecret@db/work":                       "its password is not percent-encoded",
		"postgres://ada:s?ecret@db/work":                       "its password is not percent-encoded",
		"postgres://ada:secret@db/work?ssl=true":               `the parameter "ssl" is unknown`,
		"postgres://ada:secret@db/work?sslmode=perhaps":        "sslmode",
		"postgres://ada:secret@db:x/work":                      "port",
		"postgres://ada:secret@db/work?schema=":                "is no name of a schema",
		"postgres://ada:secret@db/work?schema=pg_x":            "is no name of a schema",
		"postgres://db/work?schema=" + strings.Repeat("x", 64): "is no name of a schema",
		"postgres://db/work?schema=%zz":                        "is not percent-encoded",
	} {
		_, _, _, err := Parse(text)
		require.ErrorIs(t, err, source.ErrInvalid, text)
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "ecret", text)
	}
}
