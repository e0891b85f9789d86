//go:build unix

package main_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// recorded is a group with results of all kinds.
func recorded(t *testing.T) *station {
	s := newStation(t)
	for i := range 3 {
		s.must("run", "--once", "-n", fmt.Sprintf("good %d", i), "--", "true")
	}
	require.Equal(t, 3, s.run("run", "--once", "-n", "bad", "--", "sh", "-c", "exit 3").code)
	return s
}

func TestStatusSumsUpResults(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	require.NotContains(t, s.must("status"), "done")
	s = recorded(t)
	text := s.must("status")
	require.Regexp(t, `(?m)^3 done, 1 failed: bad \(exit 3 on \S+, \S+ ago\)$`, text)
	require.NotContains(t, s.must("status", "-q"), "done")

	s.hold("held", "--once")
	text = s.must("status")
	require.Regexp(t, `(?m)^held +held `, text)
	require.Regexp(t, `(?m)^3 done, 1 failed`, text)

	for i := range 5 {
		require.Equal(t, 4, s.run("run", "--once", "-n", fmt.Sprintf("worse%d", i), "--", "sh", "-c", "exit 4").code)
	}
	require.Contains(t, s.must("status"), "3 done, 6 failed: bad (")
	require.Contains(t, s.must("status"), ", and 3 more (see --results)\n")
}

func TestStatusListsResults(t *testing.T) {
	t.Parallel()
	s := recorded(t)
	table := s.must("status", "--results")
	require.Regexp(t, `(?m)^NAME +RESULT +EXIT +ATTEMPT +HOST +USER +ENDED +TOOK +COMMAND +WHY$`, table)
	require.Len(t, regexp.MustCompile(`(?m)^"good \d" +done +0 +1 `).FindAllString(table, -1), 3)
	require.Regexp(t, `(?m)^bad +failed +3 +1 +\S+ +\S+ +\S+ ago +\S+ +sh -c 'exit 3'`, table)

	one := s.must("status", "bad")
	require.Regexp(t, `(?m)^bad +free`, one)
	require.Regexp(t, `(?m)^bad +failed +3`, one)
	require.NotContains(t, one, "good")
	require.NotContains(t, s.must("status", "none"), "RESULT")
	require.Equal(t, Result{Name: "bad", State: "failed", Exit: 3, Attempt: 1, Command: "sh -c 'exit 3'"}, anywhere(s.result("bad")))
}

// anywhere leaves out what differs from run to run.
func anywhere(r Result) Result {
	r.Host, r.User, r.Token = "", "", ""
	return r
}

func TestCleanResults(t *testing.T) {
	t.Parallel()
	s := recorded(t)
	require.Equal(t, 4, strings.Count(s.must("clean", "--results", "--dry-run"), "would forget"))
	require.Contains(t, s.must("status"), "3 done, 1 failed")
	require.Contains(t, s.must("clean"), "nothing to clean", "without --results they are left alone")

	require.Equal(t, "forgot the result of bad\n", s.must("clean", "--results", "bad", "none"))
	require.Contains(t, s.must("status"), "3 done\n")
	require.Equal(t, "no results to forget\n", s.must("clean", "--results", "none"))

	holder := s.hold("good 1")
	for _, options := range [][]string{{"--dry-run"}, nil} {
		got := s.run(append([]string{"clean", "--results"}, options...)...)
		require.Equal(t, 121, got.code)
		require.Contains(t, got.stderr, `lock "good 1" is held by`)
	}
	require.Equal(t, "done", s.result("good 1").State)
	require.Equal(t, Result{}, s.result("good 2"))
	holder.end()
	require.Equal(t, "forgot the result of \"good 1\"\n", s.must("clean", "--results"))
	events := s.history("good 1")
	require.Equal(t, "forgot", events[len(events)-1].What)
}
