package cli_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/pglab"
)

// TestPostgresBatch has three runners process a list while the server is repeatedly killed and
// restarted: each job runs once.
func TestPostgresBatch(t *testing.T) {
	t.Parallel()
	server := pglab.Start(t, pglab.Options{})
	newStation(t, "MULTILOCK_SOURCE="+server.URL("schema=locks")).batchUnderFire("-j3", func(_ int, pace time.Duration) {
		server.Kill()
		time.Sleep(pace / 10)
		server.Begin()
	})
	require.Equal(t, "0", server.Value("SELECT count(*) FROM locks.entry WHERE key LIKE 'lock/%'"), "no lock is left")
}

// TestPostgresBatchFullDisk fills the server's disk repeatedly instead, every other time until the
// server shuts down. Runners report this, and continue once there is room.
func TestPostgresBatchFullDisk(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root, to mount a small file system")
	}
	server := pglab.StartSmall(t, 128)
	newStation(t, "MULTILOCK_SOURCE="+server.URL("schema=locks")).batchUnderFire("-j3", func(n int, pace time.Duration) {
		server.Fill()
		if n%2 == 1 {
			server.Exhaust()
		}
		time.Sleep(pace / 2)
		server.Empty()
		if n%2 == 1 {
			server.Begin()
		}
	})
	require.Equal(t, "0", server.Value("SELECT count(*) FROM locks.entry WHERE key LIKE 'lock/%'"), "no lock is left")
}
