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
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/vfs"
)

// lossyCall is a call that the server carries out and whose reply is lost.
type lossyCall struct {
	what     string
	place    place
	begin    func()
	executed func() bool
}

// loseReplies lets the server carry out calls of a host and then restart before
// the host has heard of it. The host sends them again, to a server that
// remembers nothing: the reply cache of v3 and the sessions of v4.1 are gone.
//
// One restart is for all of the calls. So each must be in a place of its own:
// while a call is under way, the client lets no other change the same directory, and of
// all renames from one directory into another it sends one at a time
// (s_vfs_rename_mutex, for each mount).
func loseReplies(t *testing.T, h host, calls []lossyCall) {
	t.Helper()
	sendAtOnce(t, h, calls[0].place)
	for _, c := range calls {
		prime(t, h, c.place)
	}
	lab(t, "net", "drop-replies", h.name, "on")
	t.Cleanup(func() { lab(t, "net", "drop-replies", h.name, "off") })
	for _, c := range calls {
		c.begin()
	}
	for _, c := range calls {
		eventually(t, c.what+" is executed", c.executed)
	}
	lab(t, "server", "restart")
	lab(t, "net", "drop-replies", h.name, "off")
	wakeClients()
}

// prime makes the host's client ask whatever it asks before it changes something
// in a directory of the place: who may, and for v3 the default access list and
// whether the lock file exists; and makes it give back the delegation of the lock
// file that v4 may have given it. It would wait for those replies instead of
// sending the request that is meant.
func prime(t *testing.T, h host, p place) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(p.stored(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		here := strings.Replace(path, p.stored(), p.on(h), 1)
		return h.inside(func() error {
			if f, err := os.OpenFile(filepath.Join(here, lossyName+".locked"), os.O_WRONLY, 0); err == nil {
				_ = f.Close()
			}
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
	there   bool // what the call leaves: an entry "new", or no entry "old"
	answer  error
}

func bareCalls() []bareCall {
	old := func(dir vfs.Dir) error { return dir.Mkdir("old", 0o777) }
	nothing := func(vfs.Dir) error { return nil }
	return []bareCall{
		{"MKDIR", nothing, func(dir vfs.Dir) error { return dir.Mkdir("new", 0o777) }, true, syscall.EEXIST},
		// The server compares the verifier of the exclusive create that it has stored in
		// the file's times: the only repetition that it recognises.
		{"CREATE", nothing, func(dir vfs.Dir) error { return createFile(dir, "new") }, true, nil},
		{"RENAME", old, func(dir vfs.Dir) error { return dir.Rename("old", dir, "new") }, true, syscall.ENOENT},
		{"RMDIR", old, func(dir vfs.Dir) error { return dir.Rmdir("old") }, false, syscall.ENOENT},
		{"REMOVE", func(dir vfs.Dir) error { return createFile(dir, "old") },
			func(dir vfs.Dir) error { return dir.Unlink("old") }, false, syscall.ENOENT},
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
		bare := bareCalls()
		answers := make([]chan error, len(bare))
		var calls []lossyCall
		for i, c := range bare {
			p := newPlace(t)
			dir := p.dir(t, h)
			require.NoError(t, c.prepare(dir))
			_, err := dir.Stat()
			require.NoError(t, err)
			answers[i] = make(chan error, 1)
			calls = append(calls, lossyCall{c.what, p, func() { go func() { answers[i] <- c.call(dir) }() }, func() bool {
				if c.there {
					return exists(p.stored("new"))
				}
				return !exists(p.stored("old"))
			}})
		}
		loseReplies(t, h, calls)
		for i, c := range bare {
			err := <-answers[i]
			t.Logf("%s: %v", c.what, err)
			require.ErrorIs(t, err, c.answer, c.what)
		}
	})
}

// lossyStep is one request of the lock that gets lost.
type lossyStep struct {
	what         string
	kind, suffix string // the operation
	play         func(t *testing.T, s *lossyScene) (do func() error)
	executed     func(p place) bool
	answer       error
	check        func(t *testing.T, s *lossyScene)
}

type lossyScene struct {
	place
	src, other *fslock.Source
	lock       *multilock.Lock
	gate       *gate
	done       chan error
}

const lossyName = "job"

// lossyRounds are the steps that can be lost together.
func lossyRounds() [][]lossyStep {
	const locked = lossyName + ".locked"
	inPlace := func(p place) bool { return exists(p.stored(fslock.DefaultGroup, lossyName, locked)) }
	return [][]lossyStep{{
		{"MKDIR of a staged lock", "mkdir", "", acquiring, func(p place) bool { return staged(p, "*") }, nil, holds},
		{"CREATE of the lock file", "opendurable", locked, acquiring, func(p place) bool { return staged(p, "*/"+locked) }, nil, holds},
		{"RENAME that acquires", "rename", "", acquiring, inPlace, nil, holds},
		// That the file is gone is also what a holder is told whose lock was broken. But
		// then somebody removes the directory as well, or has taken it.
		{"REMOVE that releases", "unlink", locked, releasing, func(p place) bool { return !inPlace(p) }, nil, isFree},
		{"RMDIR after a release", "rmdir", lossyName, releasing,
			func(p place) bool { return !exists(p.stored(fslock.DefaultGroup, lossyName)) }, nil, isFree},
	}, {
		{"RENAME that breaks", "rename", locked, breaking, func(p place) bool { return !inPlace(p) }, nil, isFree},
	}}
}

// staged says whether there is something like the pattern in staging.
func staged(p place, pattern string) bool {
	found, err := fs.Glob(os.DirFS(p.stored(".multilock", "staging")), pattern)
	return err == nil && len(found) > 0
}

func acquiring(_ *testing.T, s *lossyScene) func() error {
	return func() (err error) {
		s.lock, err = multilock.TryAcquire(context.Background(), s.src, lossyName, longOptions())
		return err
	}
}

func releasing(t *testing.T, s *lossyScene) func() error {
	s.lock = try(t, s.src, lossyName, longOptions())
	return func() error { return s.lock.Release(context.Background()) }
}

func breaking(t *testing.T, s *lossyScene) func() error {
	plant(t, s.other, lossyName, long)
	return func() error {
		_, err := multilock.Break(context.Background(), s.src, lossyName, multilock.Want{Alive: true})
		return err
	}
}

func holds(t *testing.T, s *lossyScene) {
	t.Helper()
	require.Equal(t, s.lock.Record().Token, s.record(t, lossyName).Token)
	requireHeldBy(t, s.other, lossyName, s.lock.Record().Token)
	require.NoError(t, s.lock.Verify(within(t)))
	require.NoError(t, s.lock.Release(within(t)))
	s.requireEmpty(t)
}

func isFree(t *testing.T, s *lossyScene) {
	t.Helper()
	require.NoError(t, try(t, s.other, lossyName, longOptions()).Release(within(t)))
	s.requireEmpty(t)
}

// The lock learns what became of its requests: what it calls acquired is acquired,
// and what it called released or broken is free, whatever the repetition of a
// request was answered.
func TestLostReply(t *testing.T) {
	eachVersionAtLength(t, func(t *testing.T, h host, others []host) {
		for _, steps := range lossyRounds() {
			playLossy(t, steps, h, others[0])
		}
	})
}

func playLossy(t *testing.T, steps []lossyStep, h, other host) {
	t.Helper()
	scenes := make([]*lossyScene, len(steps))
	var calls []lossyCall
	for i, step := range steps {
		s := stage(t, step, h, other)
		scenes[i] = s
		calls = append(calls, lossyCall{step.what, s.place, s.gate.letPass, func() bool { return step.executed(s.place) }})
	}
	loseReplies(t, h, calls)
	for i, step := range steps {
		require.ErrorIs(t, <-scenes[i].done, step.answer, step.what)
		step.check(t, scenes[i])
	}
}

// stage plays a step up to the request that will be lost.
func stage(t *testing.T, step lossyStep, h, other host) *lossyScene {
	t.Helper()
	s := &lossyScene{place: newPlace(t), done: make(chan error, 1)}
	src, faulty := s.gatedSource(t, h)
	s.src, s.other = src, s.source(t, other)
	do := step.play(t, s)
	s.gate = newGate(t, step.kind, step.suffix)
	faulty.Inject(s.gate.inject)
	go func() { s.done <- do() }()
	s.gate.await(t)
	return s
}
