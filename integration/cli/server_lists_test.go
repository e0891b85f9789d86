package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// As on a filesystem, a list on a server is claimed in chunks, and every command finds its jobs.
func TestListsOnServers(t *testing.T) {
	t.Parallel()
	for name, station := range map[string]func(*testing.T) *station{
		"mongodb":  func(t *testing.T) *station { s, _ := mongoStation(t); return s },
		"etcd":     etcdStation,
		"postgres": postgresStation,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := station(t)
			list := s.write("true\ntrue\nexit 3\necho hello >&2\ntrue\ntrue\ntrue\ntrue\n")
			got := s.run("-g", "G", "batch", "-j2", list)
			require.Equal(t, 1, got.code, got.stderr)
			require.Contains(t, got.stdout, "8 jobs: 7 done, 1 failed, 8 run here")
			require.Contains(t, s.must("status", "-g", "G"), "7 of 8 jobs done, 1 failed: 3 (exit 3 on ")
			require.Regexp(t, `(?m)^4 +done .* echo hello`, s.must("status", "-g", "G", "4"))
			require.Contains(t, s.must("metrics", "-g", "G"), `multilock_list_jobs{group="G",state="done"} 7`)
			require.Contains(t, s.must("history", "-g", "G"), "1 failed, of job 3")
			got = s.run("wait", "-g", "G", "--list", "--timeout", "10s")
			require.Contains(t, got.stderr, `job "3" failed with exit code 3`)

			require.Contains(t, s.must("clean", "-g", "G", "--results", "3"), "deleted the result of 3")
			require.Contains(t, s.must("status", "-g", "G"), "7 of 8 jobs done (87 % ended), 1 pending")
			got = s.run("-g", "G", "batch", list)
			require.Contains(t, got.stdout, "7 ended earlier, 1 run here")
			require.Contains(t, s.must("clean", "-g", "G", "--results"), "deleted the results of jobs 1 to 8")
			got = s.run("-g", "G", "batch", list)
			require.Contains(t, got.stdout, "8 jobs: 7 done, 1 failed, 8 run here")
		})
	}
}
