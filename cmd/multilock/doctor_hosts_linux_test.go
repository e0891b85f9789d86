package main_test

import (
	"encoding/json"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/source"
)

// joined is what the tests read of "doctor --join --json".
type joined struct {
	Findings []source.Finding
	Join     struct {
		Hosts []struct {
			Host, End string
			SameHost  bool `json:"same_host"`
		}
	}
	Exit int
}

func (r *running) joined() joined {
	r.t.Helper()
	got := r.wait()
	var j joined
	require.NoError(r.t, json.Unmarshal([]byte(got.stdout), &j), got.stderr)
	require.Equal(r.t, got.code, j.Exit)
	return j
}

// about are the findings about the others and the meeting, by severity and subject.
func (j joined) about() string {
	var all []string
	for _, f := range j.Findings {
		if f.Subject == "host" || f.Subject == "join" {
			all = append(all, string(f.Severity)+" "+f.Subject)
		}
	}
	return strings.Join(all, ", ")
}

func (j joined) met() []string {
	var all []string
	for _, h := range j.Join.Hosts {
		all = append(all, h.Host+" "+h.End)
	}
	slices.Sort(all)
	return all
}

// Hosts that are given the same line find each other. That it warns is because
// they are no real hosts: the filesystem says so.
func TestDoctorsOnHosts(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	var doctors []*running
	for _, name := range []string{"alpha", "beta", "gamma"} {
		doctors = append(doctors, begin(t, s.host(name).on("doctor", "--join", "--expect", "3", "--json")))
	}
	for i, others := range [][]string{{"beta", "gamma"}, {"alpha", "gamma"}, {"alpha", "beta"}} {
		j := doctors[i].joined()
		require.Equal(t, "fine host, fine host, fine join", j.about(), j)
		require.Equal(t, []string{others[0] + " complete", others[1] + " complete"}, j.met())
	}
	require.Equal(t, "[]", strings.TrimSpace(locksIn(s)))
}

// locksIn is the JSON of the locks that are held.
func locksIn(s *station) string {
	var report struct{ Locks json.RawMessage }
	require.NoError(s.t, json.Unmarshal([]byte(s.must("status", "--json")), &report))
	return string(report.Locks)
}

// Ctrl-C ends a doctor that waits for others, and frees its seat.
func TestDoctorIsInterrupted(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	doctor := s.start("doctor", "--join", "--timeout", "1h")
	doctor.Err.Expect(t, "multilock: waiting for other hosts, for 1h00m: 1 of 2 are here; run the same line on each")
	require.Equal(t, "held", s.lock("doctor-join-1").State)
	doctor.Signal(syscall.SIGINT)
	got := doctor.wait()
	require.Empty(t, got.stdout)
	require.Contains(t, got.stderr, "stopped by signal: interrupt")
	require.Equal(t, "[]", locksIn(s))
}
