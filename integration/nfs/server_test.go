package nfs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/vfs"
)

// longOptions are those of a lock that stays held during a test.
func longOptions() multilock.Options { return multilock.Options{TTL: long} }

// startServer brings nfsd back after "server stop".
func startServer(t testing.TB) {
	t.Helper()
	lab(t, "server", "start")
	wakeClients()
}

// wakeClients makes every host talk to the server. The grace period of v4 ends
// when the last client has reclaimed its state, which an idle one puts off.
func wakeClients() {
	for _, h := range hosts() {
		go func() {
			_ = h.inside(func() error {
				dir, err := vfs.OS{}.OpenDir(h.mount)
				if err != nil {
					return err
				}
				defer dir.Close()
				_, err = dir.Stat()
				return err
			})
		}()
	}
}

// freeze keeps the server from changing anything on the share: requests that
// would do so wait in nfsd until the share thaws.
func freeze(t testing.TB) (thaw func()) {
	t.Helper()
	share, err := os.Open("/export")
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetInt(int(share.Fd()), fifreeze, 0))
	frozen := true
	thaw = func() {
		if frozen {
			require.NoError(t, unix.IoctlSetInt(int(share.Fd()), fithaw, 0))
		}
		frozen = false
	}
	t.Cleanup(func() {
		thaw()
		_ = share.Close()
	})
	return thaw
}

// From linux/fs.h.
const (
	fifreeze = 0xc0045877
	fithaw   = 0xc0045878
)

// blockedThreads counts the server's threads that wait for the share to thaw.
func blockedThreads(t testing.TB) int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	blocked := 0
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(text), " (nfsd) D ") {
			blocked++
		}
	}
	return blocked
}
