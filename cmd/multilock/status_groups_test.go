//go:build unix

package main_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// The status of one group mentions the others, and --all shows all groups.
func TestStatusTellsOfOtherGroups(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.hold("x", "-g", "g10")
	s.hold("y", "-g", "g2")
	s.must("run", "-g", "idle", "--once", "-n", "z", "--", "true")
	for _, group := range []string{"g10", "g2"} {
		s.eventually("the group is known", func() bool { return len(s.history("-g", group)) > 0 })
	}
	got := s.must("status")
	require.Contains(t, got, "nothing is held in "+s.base+"/.locks\n"+s.base+"/.locks has never been used: is that the place (-d or --source) and the group (-g)?\nother groups: g2 (1 held), g10 (1 held), idle; to see them all: ")
	require.Contains(t, got, " status --all\n")
	require.NotContains(t, s.must("status", "-q"), "other groups")
	require.Contains(t, s.must("status", "-g", "g2"), "\nother groups: g10 (1 held), idle;")

	all := s.must("status", "--all")
	require.Regexp(t, `^GROUP +NAME +STATE .*\ng2 +y +held .*\ng10 +x +held .*\nidle: 1 done\n$`, all)
	var report struct {
		Base   string
		Groups []struct {
			Group string
			Locks []struct{ Name string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(s.must("status", "--all", "--json")), &report))
	require.Equal(t, s.base, report.Base)
	require.Len(t, report.Groups, 4, "the one that was asked for is among them")
	require.Equal(t, "y", report.Groups[0].Locks[0].Name)
	require.Equal(t, 125, s.run("status", "--all", "x").code)
}

// The exit code reports whether a lock is held, so that a script need not parse the output.
func TestStatusExitCodes(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	require.Equal(t, ended{0, "", ""}, s.run("status", "-q", "x"))
	holder := s.hold("x")
	s.dead("old")
	require.Equal(t, ended{121, "", ""}, s.run("status", "-q", "x"))
	got := s.run("status", "free", "x")
	require.Equal(t, 121, got.code)
	require.Empty(t, got.stderr)
	require.Zero(t, s.run("status", "old", "free").code, "whoever comes next takes it")
	require.Zero(t, s.run("status").code)
	holder.end()
	require.Zero(t, s.run("status", "x").code)
}

func TestStatusSortsNumbersNaturally(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	for _, name := range []string{"job10", "job9", "job1"} {
		s.must("acquire", "-n", name, "--detach", "--ttl", "1h")
	}
	var names []string
	for _, l := range s.locks() {
		names = append(names, l.Name)
	}
	require.Equal(t, []string{"job1", "job9", "job10"}, names)
}
