//go:build unix

package main_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

// schemas are the schemas in docs/schema, without additional fields.
type schemas struct {
	t        *testing.T
	compiler *jsonschema.Compiler
	used     map[string]bool
}

func newSchemas(t *testing.T) *schemas {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	return &schemas{t, c, map[string]bool{}}
}

// require parses one or more JSON values, and requires that each matches the schema.
func (s *schemas) require(name, text string) (values int) {
	s.t.Helper()
	s.used[name+".json"] = true
	schema, err := s.compiler.Compile(filepath.Join("..", "..", "docs", "schema", name+".json"))
	require.NoError(s.t, err)
	for lines := json.NewDecoder(strings.NewReader(text)); lines.More(); values++ {
		var raw json.RawMessage
		require.NoError(s.t, lines.Decode(&raw), text)
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		require.NoError(s.t, err)
		require.NoError(s.t, schema.Validate(value), "%s: %s", name, raw)
	}
	require.NotZero(s.t, values, name)
	return values
}

// requireExamples requires that the examples in a schema match it.
func (s *schemas) requireExamples(name string) {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "schema", name+".json"))
	require.NoError(s.t, err)
	var schema struct{ Examples []json.RawMessage }
	require.NoError(s.t, json.Unmarshal(text, &schema))
	for _, example := range schema.Examples {
		s.require(name, string(example))
	}
}

// The output of every command with --json matches its schema, and there is no other text.
func TestJSONFitsItsSchema(t *testing.T) {
	t.Parallel()
	s, of := newStation(t), newSchemas(t)
	list := filepath.Join(t.TempDir(), "list")
	require.NoError(t, os.WriteFile(list, []byte("a\techo a\nb\texit 3\n"), 0o600))
	s.hold("held")
	s.awaitTold("held")
	s.dead("old")
	of.require("run", s.run("run", "--json", "-q", "-g", "ticks", "-n", "tick", "--every", "1d", "--", "true").stderr)
	require.Equal(t, 1, s.run("run", "-q", "-g", "captured", "-n", "a", "--once", "--capture", "--", "sh", "-c", "echo x; exit 1").code)
	require.Equal(t, 124, s.run("run", "-q", "-n", "late", "--max-runtime", "10ms", "--", "sleep", "1000").code)
	for _, c := range []struct {
		schema string
		args   string
		code   int
	}{
		{"batch", "batch -g list " + list, 1},
		{"logs", "logs -g list", 0},
		{"history", "history -g list", 0},
		{"wait", "wait -g list --members a,b", 1},
		{"status", "status -g list --results", 0},
		{"status", "status held old free", 121},
		{"status-all", "status --all", 0},
		{"report", "report", 0},
		{"report", "report -g list", 0},
		{"overdue", "overdue -g ticks", 0},
		{"clean", "clean --dry-run", 0},
		{"break", "break old", 0},
		{"clean", "clean", 0},
		{"wait", "wait --timeout 10ms", 124},
		{"acquire", "acquire --detach --ttl 1h -n d", 0},
		{"status", "status d", 121},
		{"clean-results", "clean -g list --results", 0},
		{"logs", "logs -g captured", 0},
		{"overdue", "overdue -g captured", 2},
		{"clean-captured", "clean -g captured --captured", 0},
		{"clean-history", "clean -g list --history", 0},
		{"history", "history", 0},
		{"doctor", "doctor", 1},
		{"version", "version", 0},
		{"config", "config", 0},
	} {
		got := s.run(append(strings.Fields(c.args), "--json")...)
		require.Equal(t, c.code, got.code, "%s: %s", c.args, got.stderr)
		of.require(c.schema, got.stdout)
		if got.stderr != "" {
			of.require("message", got.stderr)
		}
	}
	token := s.lock("d").Token
	of.require("release", s.must("release", "--json", "d", "--token", token))
	run := s.run("run", "--json", "-q", "-n", "x", "--once", "--", "true")
	of.require("run", run.stderr)
	of.require("run", s.run("run", "--json", "-q", "-n", "x", "--once", "--", "true").stderr)
	of.used["common.json"] = true
	files, err := os.ReadDir(filepath.Join("..", "..", "docs", "schema"))
	require.NoError(t, err)
	for _, f := range files {
		require.True(t, of.used[f.Name()], "nothing was compared with %s", f.Name())
		of.requireExamples(strings.TrimSuffix(f.Name(), ".json"))
	}
}

// Failed acquisitions, usage errors and failures are JSON, too, if that was requested.
func TestRefusalsAreJSON(t *testing.T) {
	t.Parallel()
	s, of := newStation(t), newSchemas(t)
	s.hold("x")
	for args, code := range map[string]int{
		"run -n x --json -- true": 121, "--json run -n x -- true": 121, "acquire x --json": 121, "run --json -n x --wait 10ms -- true": 124, "break x --json": 121,
		"status --json --nosuch": 125, "nosuch --json": 125, "release --json x": 125, "status --json -d /nonexistent": 125, "wait --json x": 125,
	} {
		got := s.run(strings.Fields(args)...)
		require.Equal(t, code, got.code, "%s: %s", args, got.stderr)
		of.require("message", got.stderr)
		require.Contains(t, got.stderr, `"level":"error"`, args)
		if code == 121 && !strings.HasPrefix(args, "acquire") { // its keeper reports it as text
			require.Contains(t, got.stderr, `"lock":{"name":"x","state":"held"`, args)
		}
	}
	require.Empty(t, s.run("run", "-q", "-n", "x", "--json", "--", "true").stderr, "a refusal is none with -q")
	require.Contains(t, s.run("run", "-n", "x", "--", "echo", "--json").stderr, "multilock: lock", "that was the job's")
}
