package pglock

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/process"
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

func TestArray(t *testing.T) {
	require.Equal(t, `{"a","{b,c}","d\"e","f\\g",""}`, string(array([]string{"a", "{b,c}", `d"e`, `f\g`, ""})))
	require.Equal(t, "{}", string(array(nil)))
}

// TestJudge: the server's clock decides where it is the one that has dated the last sign of life,
// but not alone; otherwise the observer's own.
func TestJudge(t *testing.T) {
	record := source.Record{Token: "t", Claim: source.Claim{Holder: source.Holder{Identity: process.Identity{Host: "far"}}, TTL: 10 * time.Second, Heartbeat: time.Second}}
	for name, c := range map[string]struct {
		silence, unchanged, watched time.Duration
		same                        bool
		want                        source.State
	}{
		"lively":                       {time.Second, 0, 0, true, source.StateHeld},
		"silent, and not watched":      {20 * time.Second, 0, 0, true, source.StateSuspect},
		"silent, and watched":          {20 * time.Second, 2 * time.Second, 2 * time.Second, true, source.StateDead},
		"of another server":            {20 * time.Second, 2 * time.Second, 2 * time.Second, false, source.StateSuspect},
		"of another server, long":      {20 * time.Second, 10 * time.Second, 10 * time.Second, false, source.StateDead},
		"the clock was set back":       {-time.Hour, 2 * time.Second, 2 * time.Second, true, source.StateSuspect},
		"the clock was set back, long": {-time.Hour, 10 * time.Second, 10 * time.Second, true, source.StateDead},
	} {
		e := source.Evidence{Record: record, Silence: c.silence, Unchanged: c.unchanged, Watched: c.watched}
		require.Equal(t, c.want, judge(e, c.same).State, name)
	}
	require.Equal(t, source.StateHeld, judge(source.Evidence{Record: source.Record{Foreign: "x"}, Silence: time.Hour, Unchanged: time.Hour, Watched: time.Hour}, true).State)
}
