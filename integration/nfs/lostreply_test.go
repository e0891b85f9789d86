package nfs_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/vfs"
)

// loseReplies lets the server execute a host's calls and restart before the host has received the
// replies. The host retransmits the calls to a server that no longer recognises them: v3's reply
// cache and v4.1's sessions are gone.
//
// One restart serves all calls, so each call needs a place of its own: while a call is pending, the
// client allows no other change in the same directory, and it sends renames between directories one
// at a time (s_vfs_rename_mutex, per mount).
func loseReplies(t *testing.T, h host, calls []*bareCall) {
	t.Helper()
	sendAtOnce(t, h, calls[0].place)
	for _, c := range calls {
		prime(t, h, c.place)
	}
	lab(t, "net", "drop-replies", h.name, "on")
	t.Cleanup(func() { lab(t, "net", "drop-replies", h.name, "off") })
	for _, c := range calls {
		go func() { c.answered <- c.call(c.dir) }()
	}
	for _, c := range calls {
		eventually(t, c.what+" is executed", func() bool { return exists(c.place.stored(c.entry)) == c.there })
	}
	lab(t, "server", "restart")
	lab(t, "net", "drop-replies", h.name, "off")
	wakeClients()
}

// prime makes the client send the requests that precede a change in a directory of the place:
// access rights, and for v3 the default ACL. Otherwise the client would wait for those replies
// instead of sending the change.
func prime(t *testing.T, h host, p place) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(p.stored(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		here := strings.Replace(path, p.stored(), p.on(h), 1)
		return h.inside(func() error {
			_, _ = unix.Getxattr(here, "system.posix_acl_default", nil) // fails without an ACL, and with v4
			_, err := os.ReadDir(here)
			return err
		})
	}))
}

// sendAtOnce makes the host's TCP keep sending while no replies, and so no acknowledgements,
// arrive: TCP then waits for seconds before it considers a segment lost, and may have many in
// flight. The requests that follow measure the round-trip time anew. The congestion window is still
// small from the losses of an earlier test, until there is some traffic.
func sendAtOnce(t *testing.T, h host, p place) {
	t.Helper()
	route := []string{h.name, "ip", "route", "change", "10.0.0.0/24", "dev", "eth0"}
	lab(t, "on", append(route, "rto_min", "5s")...)
	t.Cleanup(func() { lab(t, "on", route...) })
	require.NoError(t, h.inside(func() error {
		traffic := filepath.Join(p.on(h), "traffic")
		err := os.WriteFile(traffic, make([]byte, 1<<20), 0o600) // sent on close at the latest
		return errors.Join(err, os.Remove(traffic))
	}))
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// bareCall is a call by a program that trusts the result that it receives.
type bareCall struct {
	what    string
	prepare func(dir vfs.Dir) error
	call    func(dir vfs.Dir) error
	entry   string
	there   bool // whether the entry exists after the call
	answer  error

	place    place
	dir      vfs.Dir
	answered chan error
}

func bareCalls() []*bareCall {
	oldDir := func(dir vfs.Dir) error { return dir.Mkdir("old", 0o777) }
	oldFile := func(dir vfs.Dir) error { return createFile(dir, "old") }
	nothing := func(vfs.Dir) error { return nil }
	mkdir := func(dir vfs.Dir) error { return dir.Mkdir("new", 0o777) }
	create := func(dir vfs.Dir) error { return createFile(dir, "new") }
	rename := func(dir vfs.Dir) error { return dir.Rename("old", dir, "new") }
	rmdir := func(dir vfs.Dir) error { return dir.Rmdir("old") }
	remove := func(dir vfs.Dir) error { return dir.Unlink("old") }
	return []*bareCall{
		{what: "MKDIR", prepare: nothing, call: mkdir, entry: "new", there: true, answer: syscall.EEXIST},
		// The server compares the verifier of the exclusive create, which it stores in the file's
		// times. This is the only retransmission that it recognises.
		{what: "CREATE", prepare: nothing, call: create, entry: "new", there: true},
		{what: "RENAME", prepare: oldDir, call: rename, entry: "new", there: true, answer: syscall.ENOENT},
		{what: "RMDIR", prepare: oldDir, call: rmdir, entry: "old", answer: syscall.ENOENT},
		{what: "REMOVE", prepare: oldFile, call: remove, entry: "old", answer: syscall.ENOENT},
	}
}

func createFile(dir vfs.Dir, name string) error {
	f, err := dir.Create(name, 0o666)
	if err != nil {
		return err
	}
	return f.Close()
}

// If its reply is lost, a call that succeeded is reported as failed. A process that trusts the
// report has a lock and does not know it, or takes its own removal for a break by another process.
// Rule: rename, release
func TestLostReplyOfABareCall(t *testing.T) {
	eachVersionAtLength(t, func(t *testing.T, h host, _ []host) {
		calls := bareCalls()
		for _, c := range calls {
			c.place, c.answered = newPlace(t), make(chan error, 1)
			c.dir = c.place.dir(t, h)
			require.NoError(t, c.prepare(c.dir))
			_, err := c.dir.Stat()
			require.NoError(t, err)
		}
		loseReplies(t, h, calls)
		for _, c := range calls {
			require.ErrorIs(t, <-c.answered, c.answer, c.what)
		}
	})
}

// softHost boots a host that gives up on the server after a few seconds.
func softHost(t testing.TB, version string) host {
	t.Helper()
	return addHost(t, "soft", version, "soft,timeo=5,retrans=1")
}

// zombie is a request that the server has received and not yet executed, and that its host has
// given up on.
type zombie struct {
	thaw func()
	h    host
}

// raise sends a request and makes the host give up on it. The share is frozen, so the request waits
// inside nfsd. The connection is cut and cannot be reestablished, because v4 gives up only without
// a connection.
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

// awaken lets the server execute the request, and returns when the host is connected again.
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

// A soft mount reports a rename as failed that the server executes later. A process that trusts the
// report leaves a lock in place without a holder.
// Rule: rename
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

// A release whose reply is missing reports that it is unsure, and can be repeated. If the server
// executes it later, even after the repetition, it does no harm.
// Rule: release, I4
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
		// A lock held only briefly is released without a check; see fslock's Release.
		if err := lock.Release(within(t)); !errors.Is(err, multilock.ErrUnsure) {
			require.NoError(t, err)
		}
		require.NoError(t, successor.Verify(within(t)))
		require.Equal(t, successor.Record().Token, p.record(t, "job").Token)
	})
}

// freeze keeps the server from changing anything on the share: requests that would do so wait in
// nfsd until the share thaws.
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
