package pglab

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/engine"
)

// HasPooler reports whether PgBouncer is installed.
func HasPooler() bool {
	_, err := exec.LookPath("pgbouncer")
	return err == nil
}

// Pooler starts PgBouncer in front of a server, in transaction mode, and returns its address.
func (s *Server) Pooler(t testing.TB, connections int) string {
	t.Helper()
	dir, address := folder(t), engine.Free(t, engine.OwnHost())
	host, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	behind, theirs, err := net.SplitHostPort(s.Address)
	require.NoError(t, err)
	config := filepath.Join(dir, "pgbouncer.ini")
	text := fmt.Sprintf(`[databases]
%s = host=%s port=%s user=%s
[pgbouncer]
listen_addr = %s
listen_port = %s
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = %d
max_client_conn = 500
logfile = %s/log
`, DB, behind, theirs, User, host, port, connections, dir)
	require.NoError(t, os.WriteFile(config, []byte(text), 0o600))
	own(t, config)
	cmd := asServer("sh", "-c", guarded, "sh", "TERM", "pgbouncer", "-q", config)
	cmd.Env = append(cmd.Env, "PATH=/usr/sbin:"+os.Getenv("PATH"))
	input, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = input.Close()
		_ = cmd.Wait()
	})
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		conn, err := pgconn.Connect(ctx, URL(address, ""))
		if err == nil {
			_ = conn.Close(ctx)
		}
		return err == nil
	}, patience, 50*time.Millisecond, "PgBouncer does not get ready")
	return address
}
