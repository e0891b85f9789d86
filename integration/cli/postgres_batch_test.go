package cli_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/pglab"
)

// TestPostgresBatch has three runners work through a list while the server is killed and started
// again: each job runs once.
func TestPostgresBatch(t *testing.T) {
	t.Parallel()
	server := pglab.Start(t, pglab.Options{})
	newStation(t, "MULTILOCK_SOURCE="+server.URL("schema=locks")).batchUnderFire("-j3", func(_ int, pace time.Duration) {
		server.Kill()
		time.Sleep(pace / 10)
		server.Begin()
	})
	require.Equal(t, "0", server.Value("SELECT count(*) FROM locks.lock"), "no lock is left")
}
