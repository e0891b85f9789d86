//go:build unix

package main_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHistory(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	require.Empty(t, s.history())
	require.Equal(t, 1, strings.Count(s.must("history"), "\n"), "the heading alone")
	s.requireUntouched()

	s.must("run", "-n", "a", "--", "true")
	require.Equal(t, 5, s.run("run", "-n", "b", "--", "sh", "-c", "exit 5").code)
	require.Equal(t, 127, s.run("run", "-n", "a", "--", "/nonexistent").code)
	require.Equal(t, 137, s.run("run", "-n", "b", "--", "sh", "-c", "kill -KILL $$").code)
	s.must("run", "-n", "a", "-g", "another", "--", "true")

	events := s.history()
	require.Equal(t, []string{"acquired", "released", "acquired", "released", "acquired", "released", "acquired", "released"}, happened(events))
	require.Equal(t, 0, *events[1].Exit)
	require.Equal(t, "true", events[1].Command)
	require.Equal(t, 5, *events[3].Exit)
	require.Equal(t, "sh -c 'exit 5'", events[3].Command)
	require.Equal(t, 127, *events[5].Exit, "what the run ended with")
	require.Contains(t, events[5].Why, "command not found")
	require.Equal(t, 137, *events[7].Exit)
	require.Equal(t, "killed", events[7].Signal)
	require.Equal(t, uint64(2), events[7].Fence)
	require.Equal(t, events[6].Token, events[7].Token)
	require.Equal(t, events[6].By.PID, events[7].By.PID)

	require.Equal(t, events[2:4], s.history("b", "--since", "1h")[:2])
	require.Equal(t, append(events[0:2:2], events[4:6]...), s.history("a"))
	require.Equal(t, events, s.history("a", "-n", "b"))
	require.Equal(t, events[5:], s.history("--limit", "3"))
	require.Empty(t, s.history("--since", "0"))
	require.Empty(t, s.history("c"))

	table := s.must("history", "b")
	require.Regexp(t, `^TIME +NAME +EVENT +HOST +PID +USER +DETAILS\n`, table)
	require.Regexp(t, `\n\d{4}-\d\d-\d\d \d\d:\d\d:\d\d +b +released +\S+ +\d+ +\S+ +exit 5, held \S+, fence 1, sh -c 'exit 5'\n`, table)
	require.Contains(t, table, "exit 137, signal: killed")
}
