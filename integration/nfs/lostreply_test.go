package nfs_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/multilock/vfs"
)

// loseReplies lets the server carry out calls of a host and then restart before
// the host has heard of it. The host sends them again, to a server that
// remembers nothing: the reply cache of v3 and the sessions of v4.1 are gone.
//
// One restart is for all of the calls. So each must be in a place of its own:
// while a call is under way, the client lets no other change the same directory, and of
// all renames from one directory into another it sends one at a time
// (s_vfs_rename_mutex, for each mount).
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

// prime makes the host's client ask whatever it asks before it changes something
// in a directory of the place: who may, and for v3 the default access list. It would
// wait for those replies instead of sending the request that is meant.
func prime(t *testing.T, h host, p place) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(p.stored(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		here := strings.Replace(path, p.stored(), p.on(h), 1)
		return h.inside(func() error {
			_, _ = unix.Getxattr(here, "system.posix_acl_default", nil) // there is none, or this is v4
			_, err := os.ReadDir(here)
			return err
		})
	}))
}

// sendAtOnce has the host's TCP send requests though no reply comes, and so no
// acknowledgement: it waits for seconds before it takes a segment for lost, and may
// have many under way. The times are measured anew by the requests that follow. How
// many is still as few as the losses of an earlier test have left it, until there is
// some traffic.
func sendAtOnce(t *testing.T, h host, p place) {
	t.Helper()
	route := []string{h.name, "ip", "route", "change", "10.0.0.0/24", "dev", "eth0"}
	lab(t, "on", append(route, "rto_min", "5s")...)
	t.Cleanup(func() { lab(t, "on", route...) })
	require.NoError(t, h.inside(func() error {
		traffic := filepath.Join(p.on(h), "traffic")
		err := os.WriteFile(traffic, make([]byte, 1<<20), 0o600) // sent at the latest when it is closed
		return errors.Join(err, os.Remove(traffic))
	}))
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// bareCall is one call as a program makes it that believes what it is told.
type bareCall struct {
	what    string
	prepare func(dir vfs.Dir) error
	call    func(dir vfs.Dir) error
	entry   string
	there   bool // whether the call leaves the entry
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
		// The server compares the verifier of the exclusive create that it has stored in
		// the file's times: the only repetition that it recognises.
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

// A call that was carried out is reported as failed if its reply got lost with
// the server: whoever believes that has a lock and does not know it, or thinks
// that somebody took his lock from him.
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
