package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/fakecloudshell"
)

// plainStation has the service model that the convention installs now: a lock there is
// there or not, and says nothing about its holder.
func plainStation(t *testing.T) (*station, *fakecloudshell.Server) {
	t.Helper()
	server := newCloudshellWith(t, fakecloudshell.Options{Models: []fakecloudshell.Model{fakecloudshell.PlainMutex()}})
	return newStation(t, "MULTILOCK_SOURCE="+cloudshellURL(server), "MULTILOCK_PASSWORD="+password), server
}

const noOwner = `the service model "Mutex Service" has no attribute "Mutex Owner"`

// What can be told of a plain lock is told.
func TestPlainStatus(t *testing.T) {
	t.Parallel()
	s, _ := plainStation(t)
	require.Contains(t, s.must("status"), "nothing is held")
	holder := s.hold()
	got := s.run("status")
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stdout, "MUTEX  held")
	require.Contains(t, got.stdout, noOwner)
	require.NotContains(t, got.stdout, "script", "it may be our own")
	var report struct {
		Locks   []struct{ Name, State, Why string }
		Results *json.RawMessage
	}
	require.NoError(t, json.Unmarshal([]byte(s.must("status", "--json")), &report))
	require.Len(t, report.Locks, 1)
	require.Nil(t, report.Results)
	require.Equal(t, "held", s.lock("MUTEX").State)
	require.Equal(t, "free", s.lock("OTHER").State)
	got = s.run("status", "--results")
	require.Equal(t, 125, got.code)
	require.Contains(t, got.stderr, "keeps no results of jobs ("+noOwner)
	got = s.run("run", "--", "true")
	require.Equal(t, 121, got.code)
	require.Contains(t, got.stderr, "only break --force can clear it")
	require.Equal(t, ended{0, "ready\n", ""}, holder.end())
}

// The promises are those of the mode that was found.
func TestPlainPromises(t *testing.T) {
	t.Parallel()
	s, _ := plainStation(t)
	got := s.run("doctor", "--json")
	require.Equal(t, 1, got.code, got.stderr)
	var report struct {
		Promises []struct {
			Trait string
			Kept  *bool
			Why   string
		}
	}
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &report))
	kept := []string{}
	for _, p := range report.Promises {
		require.NotNil(t, p.Kept, p.Trait)
		if *p.Kept {
			kept = append(kept, p.Trait)
			continue
		}
		require.NotEmpty(t, p.Why, p.Trait)
	}
	require.ElementsMatch(t, []string{"break by force", "prompt release", "one clock", "cheap barrier"}, kept)
}

// What is missing is named, and why; what nothing is missing for works.
func TestPlainCommands(t *testing.T) {
	t.Parallel()
	s, server := plainStation(t)
	for command, lack := range map[string]string{
		"history":                        "history: this source keeps no history",
		"release --token t":              "release: this source does not tell who holds a lock",
		"acquire --detach --ttl 1h":      "acquire: --detach: this source does not tell whether a holder is dead",
		"doctor --join --expect 2 -t 1s": "doctor: --join: this source does not tell whether a holder is dead",
	} {
		got := s.run(strings.Fields(command)...)
		require.Equal(t, 125, got.code, "%s: %s", command, got.stderr)
		require.Contains(t, got.stdout+got.stderr, lack+" ("+noOwner, command)
	}
	require.Empty(t, aliases(server))
	s.must("report", "-o", t.TempDir()+"/page.html")

	holder := s.hold()
	got := s.run("break", "MUTEX")
	require.Equal(t, 121, got.code)
	require.Contains(t, got.stderr, "only break --force can clear it")
	require.Equal(t, 124, s.run("wait", "--timeout", "300ms").code)
	require.Zero(t, holder.end().code)
	require.Zero(t, s.run("wait").code)

	s.hold().Kill()
	require.Equal(t, 121, s.run("run", "--", "true").code)
	require.Contains(t, s.must("break", "--force", "--now", "MUTEX"), `broke lock "MUTEX"`)
	s.must("run", "--", "true")
}
