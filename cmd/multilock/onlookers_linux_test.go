package main_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/clitest"
)

// onlooker is a user who may read a base directory, and change nothing in it.
func onlooker(t *testing.T) member {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to play another user")
	}
	s := &station{t: t, base: openToAll(t)}
	require.NoError(t, os.Chmod(s.base, 0o755))
	return member{s, 65533, "022"}
}

func TestOnlookersWaitEndsWithTheJobs(t *testing.T) {
	t.Parallel()
	for _, options := range [][]string{nil, {"--members", "job", "--wait-for-takeover", "100ms"}} {
		t.Run(strings.Join(options, " "), func(t *testing.T) {
			t.Parallel()
			m := onlooker(t)
			require.Equal(t, -1, m.station.run("run", "-n", "job", "--", "sh", "-c", "kill -9 $PPID").code)
			got := m.run(append([]string{"wait", "--timeout", "1m"}, options...)...)
			require.Equal(t, 1, got.code, "the job died: %s", got.stderr)
			require.Contains(t, got.stderr, "job \"job\" died, run by ")
			require.Contains(t, got.stderr, "warning: the lock of a dead holder is still there: ")
			require.Equal(t, 1, strings.Count(got.stderr, "permission denied"), got.stderr)
		})
	}
}

func TestOnlookersStatusWatches(t *testing.T) {
	t.Parallel()
	m := onlooker(t)
	holder := begin(t, m.host("other").on(append([]string{"run", "-n", "job", "--ttl", "5s", "--"}, clitest.WaitingJob()...)...))
	holder.Expect("ready")
	holder.Kill()
	holder.wait()
	require.Contains(t, m.run("status", "job").stdout, "how long it has been silent is not known")
	watching := m.start("status", "--watch", "--every", "50ms", "--json", "job")
	m.eventually("it is seen dead", func() bool { return strings.Contains(watching.Out.String(), `"dead"`) })
	watching.Kill()
	watching.wait()
}
