package pglab

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Standby starts a streaming standby of a server.
func (s *Server) Standby(t testing.TB) *Server {
	t.Helper()
	standby := prepare(t)
	standby.Rebuild(s)
	return standby
}

// Rebuild starts a stopped server as a standby of another one, with a copy of that server's data.
func (s *Server) Rebuild(of *Server) {
	s.Helper()
	require.NoError(s, os.RemoveAll(s.dir))
	host, port, err := net.SplitHostPort(of.Address)
	require.NoError(s, err)
	copied := asServer(filepath.Join(Installed(), "pg_basebackup"), "-D", s.dir, "-h", host, "-p", port, "-U", User, "-X", "stream", "-c", "fast", "--no-sync", "-R")
	out, err := copied.CombinedOutput()
	require.NoError(s, err, "%s", out)
	s.Begin()
	require.Eventually(s, func() bool {
		return of.Value("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'") != "0"
	}, patience, 50*time.Millisecond)
}

// WaitFor makes commits wait for these standbys; "" means none.
func (s *Server) WaitFor(standbys string) {
	s.Helper()
	s.SQL("ALTER SYSTEM SET synchronous_standby_names = '" + standbys + "'")
	s.SQL("SELECT pg_reload_conf()")
	require.Eventually(s, func() bool { return s.Value("SHOW synchronous_standby_names") == standbys }, patience, 20*time.Millisecond)
	if standbys != "" {
		require.Eventually(s, func() bool {
			return s.Value("SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')") != "0"
		}, patience, 20*time.Millisecond)
	}
}

// Promote turns a standby into the primary.
func (s *Server) Promote() {
	s.Helper()
	s.SQL("SELECT pg_promote(true, 60)")
	require.Equal(s, "f", s.Value("SELECT pg_is_in_recovery()"))
}

// Cut stops replication from the primary to its standby.
func (s *Server) Cut(standby *Server) {
	s.Helper()
	standby.SQL("ALTER SYSTEM SET primary_conninfo = ''")
	standby.SQL("SELECT pg_reload_conf()")
	require.Eventually(s, func() bool { return s.Value("SELECT count(*) FROM pg_stat_replication") == "0" }, patience, 20*time.Millisecond)
}
