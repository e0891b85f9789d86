package cli_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/clitest"
)

// Everything else that a user sees of this source.
func TestEtcd(t *testing.T) {
	t.Parallel()
	s := etcdStation(t)
	holder := s.hold("-n", "x", "-g", "night")
	require.Contains(t, s.must("status", "-g", "night"), "x")
	require.Contains(t, s.must("report", "-g", "night", "-o", "-"), "<html")
	s.eventually("the history is written in the background", func() bool { return strings.Contains(s.must("history", "-g", "night"), "acquired") })
	require.Zero(t, holder.end().code)
	require.Equal(t, "ran\n", s.must("run", "--fair", "--wait", "1m", "-n", "x", "-g", "night", "--", "echo", "ran"))
	require.Equal(t, "ran\n", s.must("run", "--slots", "2", "--wait", "1m", "-n", "y", "-g", "night", "--", "echo", "ran"))
	got := s.run("run", "--every", "1d", "-n", "z", "--", "true")
	require.Equal(t, 125, got.code)
	require.Contains(t, got.stderr, "etcd does not report the time")
	require.Contains(t, clitest.OneLine(s.run("doctor").stdout), "if one is down, no lock can be acquired")
}

func TestEtcdTroubles(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	for name, c := range map[string]struct {
		vars []string
		want string
	}{
		"no password":    {[]string{"MULTILOCK_SOURCE=etcd://ada@" + deaf(t) + "/jobs"}, "there is no password for the user ada: put it into the variable MULTILOCK_PASSWORD"},
		"nobody listens": {[]string{"MULTILOCK_SOURCE=etcd://" + deaf(t) + "/jobs"}, "connection refused"},
		"nobody listens to a user": {
			[]string{"MULTILOCK_SOURCE=etcd://ada:" + escaped + "@" + deaf(t) + "/jobs"}, "are its members running",
		},
		"no prefix":         {[]string{"MULTILOCK_SOURCE=etcd://" + deaf(t) + "/"}, "it must name a prefix"},
		"unknown parameter": {[]string{"MULTILOCK_SOURCE=etcd://" + deaf(t) + "/jobs?tsl=true"}, `the parameter "tsl" is unknown`},
		"no certificate":    {[]string{"MULTILOCK_SOURCE=etcd://" + deaf(t) + "/jobs?cafile=/nowhere"}, "read cafile"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &station{t, append(slices.Clip(s.vars), c.vars...), s.secrets}
			s.requireTrouble(strings.TrimSpace(c.want))
		})
	}
}
