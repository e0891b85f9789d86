package nfs_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/multilock"
)

// softHost boots a host that gives up on the server after a few seconds.
func softHost(t testing.TB, version string) host {
	t.Helper()
	return addHost(t, "soft", version, "soft,timeo=5,retrans=1")
}

// zombie is a request that the server has taken in and not yet carried out,
// from a host that has given up on it.
type zombie struct {
	thaw func()
	h    host
}

// raise sends a request and lets the host give up on it. The share is frozen: the
// request waits inside nfsd. And the connection breaks and cannot be made again,
// for only without one does v4 give up.
func raise(t *testing.T, h host, send func()) *zombie {
	t.Helper()
	z := &zombie{thaw: freeze(t), h: h}
	before := blockedThreads(t)
	send()
	eventually(t, "the server has the request", func() bool { return blockedThreads(t) > before })
	lab(t, "net", "cut", h.name)
	lab(t, "on", h.name, "ss", "--no-header", "--kill", "dport = :2049")
	return z
}

// awaken lets the server carry the request out, and returns when the host can
// talk to it again.
func (z *zombie) awaken(t *testing.T) {
	t.Helper()
	z.thaw()
	lab(t, "net", "heal", z.h.name)
	eventually(t, "the host is connected", func() bool {
		dir, err := z.h.OpenDir(z.h.mount)
		if err != nil {
			return false
		}
		defer dir.Close()
		_, err = dir.Stat()
		return err == nil
	})
}

func eachSoftHost(t *testing.T, run func(t *testing.T, h, other host)) {
	eachVersion(t, func(t *testing.T, h host, _ []host) {
		if testing.Short() && h.version != "3" {
			t.Skip("takes half a minute: v4 is slow to give up")
		}
		run(t, softHost(t, h.version), h)
	})
}

// A soft mount reports a rename as failed that is carried out later. Whoever
// believes the report leaves a lock that nobody knows of, and that nobody holds.
func TestBareRenameAfterItsFailure(t *testing.T) {
	eachSoftHost(t, func(t *testing.T, h, _ host) {
		p := newPlace(t)
		dir := p.dir(t, h)
		require.NoError(t, dir.Mkdir("old", 0o777))
		answer := make(chan error, 1)
		z := raise(t, h, func() { go func() { answer <- dir.Rename("old", dir, "new") }() })
		require.ErrorIs(t, <-answer, syscall.EIO)
		require.NoDirExists(t, p.stored("new"))
		z.awaken(t)
		eventually(t, "the rename is carried out", func() bool { return exists(p.stored("new")) })
	})
}

// A release of which the answer is missing says so, and can be repeated. When it
// is carried out later, even after the repetition, it hurts nobody.
func TestReleaseThatIsCarriedOutLater(t *testing.T) {
	eachSoftHost(t, func(t *testing.T, h, other host) {
		p := newPlace(t)
		lock := try(t, p.source(t, h), "job", longOptions())
		answer := make(chan error, 1)
		z := raise(t, h, func() { go func() { answer <- lock.Release(context.Background()) }() })
		require.ErrorIs(t, <-answer, multilock.ErrUnsure)
		require.NotEmpty(t, p.record(t, "job").Token)
		z.awaken(t)
		successor := acquire(t, p.source(t, other), "job", longOptions())
		// Held for a moment only, it was released without a look: see fslock's Release.
		if err := lock.Release(within(t)); !errors.Is(err, multilock.ErrUnsure) {
			require.NoError(t, err)
		}
		require.NoError(t, successor.Verify(within(t)))
		require.Equal(t, successor.Record().Token, p.record(t, "job").Token)
	})
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
