package nfs_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/vfs"
)

// What the lab's test command passes on, for a process that takes locks as the
// Python MultiLock does.
const (
	pythonHome = "/guest/python/usr"
	peerScript = "/guest/multilock_peer.py"
)

// snake is such a process on a host. See multilock/fslock/testdata/multilock_peer.py
// for what it can be told.
type snake struct {
	*exec.Cmd
	input  io.Writer
	output *bufio.Scanner
}

func newSnake(t *testing.T, h host, p place) *snake {
	t.Helper()
	libraries := pythonHome + "/lib/x86_64-linux-gnu"
	s := &snake{Cmd: exec.Command("on", h.name, "env", "PYTHONHOME="+pythonHome, "PYTHONDONTWRITEBYTECODE=1",
		"LD_LIBRARY_PATH="+libraries+":/guest/python/lib/x86_64-linux-gnu",
		pythonHome+"/bin/python3.11", peerScript, p.on(h, fslock.DefaultGroup))}
	s.Stderr = os.Stderr
	var err error
	s.input, err = s.StdinPipe()
	require.NoError(t, err)
	output, err := s.StdoutPipe()
	require.NoError(t, err)
	s.output = bufio.NewScanner(output)
	require.NoError(t, s.Start())
	t.Cleanup(s.end)
	return s
}

// end kills the process; a second call does nothing.
func (s *snake) end() {
	_ = s.Process.Kill()
	_ = s.Wait()
}

func (s *snake) tell(t *testing.T, format string, args ...any) {
	t.Helper()
	_, err := fmt.Fprintf(s.input, format+"\n", args...)
	require.NoError(t, err)
}

func (s *snake) hear(t *testing.T) string {
	t.Helper()
	require.True(t, s.output.Scan(), "the Python process ended without an answer")
	return s.output.Text()
}

func (s *snake) do(t *testing.T, command string) string {
	t.Helper()
	s.tell(t, "%s", command)
	return s.hear(t)
}

// besides opens the locks of a place for use together with Python peers.
func (p place) besides(t *testing.T, h host) *fslock.Source {
	return open(t, fslock.Options{Base: p.on(h), FS: h, Self: h.identity(t), LegacyPeers: true})
}

// withPython runs a test with the Python peer on the v3 host, and on the v4.1 one;
// ours are on the others.
func withPython(t *testing.T, run func(t *testing.T, peer host, ours []host)) {
	needCommand(t)
	if _, err := os.Stat(pythonHome); err != nil {
		t.Skip("there is no python3 in this machine: the lab could not get Debian's packages of it")
	}
	all := hosts()
	t.Run("v3", func(t *testing.T) { run(t, all[2], all[:2]) })
	if !testing.Short() {
		t.Run("v4.1", func(t *testing.T) { run(t, all[1], []host{all[2], all[0]}) })
	}
}

// Each side sees on its host what the other one holds on another, and whose it is.
func TestPythonAndOursSeeEachOther(t *testing.T) {
	withPython(t, func(t *testing.T, peer host, ours []host) {
		p := newPlace(t)
		python := newSnake(t, peer, p)
		for _, h := range ours {
			src := p.besides(t, h)
			require.Equal(t, "acquired", python.do(t, "acquire job"))
			_, err := multilock.TryAcquire(within(t), src, "job", multilock.Options{})
			require.ErrorIs(t, err, multilock.ErrHeld)
			seen := p.status(t, h)
			require.Len(t, seen, 1)
			require.Equal(t, python.do(t, "me job"), fmt.Sprintf("%s %d", seen[0].Host, seen[0].PID))
			require.Equal(t, peer.name, seen[0].Host)
			require.Equal(t, "mine", python.do(t, "verify job"))
			require.Equal(t, "released", python.do(t, "release job"))

			lock := acquire(t, src, "job", multilock.Options{TTL: long})
			require.Equal(t, "denied", python.do(t, "acquire job"))
			require.Equal(t, "not mine", python.do(t, "verify job"))
			require.Equal(t, "not mine", python.do(t, "release job"))
			require.NoError(t, lock.Verify(within(t)))
			require.NoError(t, lock.Release(within(t)))
		}
		p.requireEmpty(t)
	})
}

// The barriers of both sides agree about whether anything is held, whoever holds it.
func TestPythonAndOursAgreeAboutTheBarrier(t *testing.T) {
	withPython(t, func(t *testing.T, peer host, ours []host) {
		p := newPlace(t)
		python, waiting := newSnake(t, peer, p), newSnake(t, peer, p)
		src, base := p.besides(t, ours[0]), p.dir(t, ours[1])

		lock := acquire(t, src, "job", multilock.Options{TTL: long})
		require.Equal(t, "held", waiting.do(t, "wait job"))
		require.False(t, passes(t, base))
		require.Equal(t, "acquired", python.do(t, "acquire other"))
		require.NoError(t, lock.Release(within(t)))
		require.Equal(t, "held", waiting.do(t, "wait job"))
		require.False(t, passes(t, base))
		require.Equal(t, "released", python.do(t, "release other"))
		require.True(t, passes(t, base))
		require.Equal(t, "passed", waiting.do(t, "wait job"))

		again := acquire(t, src, "job", multilock.Options{TTL: long})
		require.False(t, passes(t, base)) // although this host has just found that there is no group
		require.NoError(t, again.Release(within(t)))
	})
}

// passes is one poll of the barrier. A client may remember that there is no group:
// only making it, and removing it again, asks the server.
func passes(t *testing.T, base vfs.Dir) bool {
	t.Helper()
	err := base.Rmdir(fslock.DefaultGroup)
	for errors.Is(err, syscall.ENOENT) {
		err = base.Mkdir(fslock.DefaultGroup, 0o777)
		if err == nil || errors.Is(err, syscall.EEXIST) {
			err = base.Rmdir(fslock.DefaultGroup)
		}
	}
	if err != nil {
		require.ErrorIs(t, err, syscall.ENOTEMPTY)
	}
	return err == nil
}

// One of theirs and two of ours, each on a host of its own, add to one number,
// which no two may do at once. Two Python processes on one NFS client would trip
// over each other: if one removes the lock file while the other reads it, the
// client keeps it as .nfs..., and the release ends with "Directory not empty".
func TestPythonAndOursTakeTurnsAcrossHosts(t *testing.T) {
	rounds := 100
	if testing.Short() {
		rounds = 15
	}
	withPython(t, func(t *testing.T, peer host, ours []host) {
		p := newPlace(t)
		counter := outside(t) + "/counter"
		require.NoError(t, os.WriteFile(counter, []byte("0"), 0o666))
		python := newSnake(t, peer, p)
		python.tell(t, "count job %s %d", counter, rounds)
		results := make(chan error)
		for _, h := range ours {
			src := p.besides(t, h)
			go func() { results <- countBesides(t, src, counter, rounds) }()
		}
		for range ours {
			require.NoError(t, <-results)
		}
		require.Equal(t, "counted", python.hear(t))
		number, err := readNumber(counter)
		require.NoError(t, err)
		require.Equal(t, (1+len(ours))*rounds, number)
		p.requireEmpty(t)
	})
}

func countBesides(t *testing.T, src *fslock.Source, counter string, rounds int) error {
	for range rounds {
		lock, err := multilock.Acquire(t.Context(), src, "job", multilock.Options{TTL: long})
		if err != nil {
			return err
		}
		if err := increment(counter); err != nil {
			return err
		}
		if err := lock.Release(t.Context()); err != nil {
			return err
		}
	}
	return nil
}

// A Python holder that was killed has left nothing that proves its death: its lock
// stays, until somebody says for how long it may be silent.
func TestKilledPythonHolderNeedsMaxAge(t *testing.T) {
	withPython(t, func(t *testing.T, peer host, ours []host) {
		p := newPlace(t)
		python := newSnake(t, peer, p)
		require.Equal(t, "acquired", python.do(t, "acquire job"))
		python.end()
		for _, h := range []host{peer, ours[0]} {
			_, err := multilock.TryAcquire(within(t), p.besides(t, h), "job", multilock.Options{})
			require.ErrorIs(t, err, multilock.ErrHeld)
		}
		src := p.besides(t, ours[0])
		lock := acquire(t, src, "job", multilock.Options{TTL: long, Patience: multilock.Patience{MaxAge: shortTTL}})
		require.Len(t, broken(t, src), 1)
		require.Contains(t, broken(t, src)[0], "no sign of life")
		require.NoError(t, lock.Release(within(t)))
	})
}

// A Python peer that stood still while it took the lock, until it was cleared away,
// goes on by path into a directory that is ours by then, and gets nowhere.
func TestPythonPausedWhileItTakesTheLock(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	for name, steps := range map[string]struct{ before, after []string }{
		"before its lock file": {[]string{"mkdir job"}, []string{"fill job", "rename job"}},
		"before its rename":    {[]string{"mkdir job", "fill job"}, []string{"rename job"}},
	} {
		t.Run(name, func(t *testing.T) {
			withPython(t, func(t *testing.T, peer host, ours []host) {
				p := newPlace(t)
				python := newSnake(t, peer, p)
				for _, step := range steps.before {
					require.Equal(t, "done", python.do(t, step))
				}
				lock := acquire(t, p.besides(t, ours[0]), "job", multilock.Options{TTL: long})
				for _, step := range steps.after {
					require.Contains(t, python.do(t, step), "denied", step)
				}
				require.Equal(t, "not mine", python.do(t, "verify job"))
				require.NoError(t, lock.Verify(within(t)))
				require.NoError(t, lock.Release(within(t)))
				require.Equal(t, "acquired", python.do(t, "acquire job"))
			})
		})
	}
}
