package nfs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
)

// A v4 client that reads the lock file may be given a delegation for it, and
// dies with it. Whoever then breaks the lock waits until the server takes the
// delegation back, which it does after a lease, and gets through.
func TestDeadReadersDelegation(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute for each version")
	}
	eachVersionAtLength(t, func(t *testing.T, h host, others []host) {
		p := newPlace(t)
		lease := plant(t, p.source(t, others[0]), "job", long)
		reader := addHost(t, "reader", "4.2", "hard")
		requireDelegation(t, newActor(t, reader, p), p.on(reader, fslock.DefaultGroup, "job", "job.locked"))
		lab(t, "host", "crash", reader.name)

		start := time.Now()
		breakAlive(t, p.source(t, h))
		t.Logf("the break took %s", time.Since(start).Round(time.Millisecond))
		require.ErrorIs(t, lease.Renew(within(t)), multilock.ErrLost)
		require.NoError(t, try(t, p.source(t, h), "job", longOptions()).Release(within(t)))
		p.requireEmpty(t)
	})
}

// requireDelegation makes a reader open the lock file until it is given a delegation with
// it. A server that still has the file open for a v3 client that wrote it, as it does for
// some seconds, gives none.
func requireDelegation(t *testing.T, reader remote, lockFile string) {
	t.Helper()
	eventually(t, "the reader is given a delegation", func() bool {
		reader.must(t, order{Do: "keep open", Path: lockFile})
		if delegated(t, filepath.Base(lockFile)) {
			return true
		}
		reader.must(t, order{Do: "close"})
		time.Sleep(time.Second)
		return false
	})
}

// delegated says whether the server counts a delegation of a file of that name.
func delegated(t testing.TB, name string) bool {
	t.Helper()
	clients, err := filepath.Glob("/proc/fs/nfsd/clients/*/states")
	require.NoError(t, err)
	for _, path := range clients {
		states, err := os.ReadFile(path)
		if err != nil {
			continue // that client has just gone
		}
		for _, state := range strings.Split(string(states), "\n") {
			if strings.Contains(state, "type: deleg") && strings.Contains(state, name) {
				return true
			}
		}
	}
	return false
}
