package nfs_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

const (
	// watchdog ends a test that hangs. No result depends on its length.
	watchdog = 2 * time.Minute
	// long is a TTL that does not end during a test.
	long = time.Hour
	// shortTTL is a TTL that tests wait out. It is long enough for ten heartbeats on an emulated
	// machine.
	shortTTL = 3 * time.Second
)

// tool runs one of the lab's tools: host, net or server.
func tool(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %q: %w: %s", name, args, err, out)
	}
	return nil
}

// lab runs one of the lab's tools and requires it to succeed.
func lab(t testing.TB, name string, args ...string) {
	t.Helper()
	require.NoError(t, tool(name, args...))
}

// within returns a context with the watchdog's timeout.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	t.Cleanup(cancel)
	return ctx
}

// eventually waits for a condition that another process or host fulfils.
func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(watchdog); !done(); {
		require.True(t, time.Now().Before(end), "this never happened: %s", what)
		time.Sleep(5 * time.Millisecond)
	}
}

// awaitCount waits until the count has been reached. It only fails if the count stops growing.
func awaitCount(t testing.TB, what string, want int, count func() int) {
	t.Helper()
	last := -1
	for last < want {
		next := last
		eventually(t, fmt.Sprintf("%s: more than %d of %d", what, last, want), func() bool {
			time.Sleep(100 * time.Millisecond) // counting may read a large file
			next = count()
			return next > last
		})
		last = next
	}
}

// awaitExit waits for a process that must end.
func awaitExit(t testing.TB, wait func() error) error {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- wait() }()
	select {
	case err := <-ended:
		return err
	case <-within(t).Done():
		return errors.New("the process did not end")
	}
}

// place is a base directory on the share.
type place struct{ name string }

// newPlace creates an empty base directory that every user may read.
func newPlace(t testing.TB) place {
	t.Helper()
	dir, err := os.MkdirTemp("/export", "place-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return place{filepath.Base(dir)}
}

// on returns a path below the place as a host sees it.
func (p place) on(h host, elements ...string) string {
	return filepath.Join(append([]string{h.mount, p.name}, elements...)...)
}

// stored returns the same path on the server's own disk, which bypasses the NFS clients.
func (p place) stored(elements ...string) string {
	return filepath.Join(append([]string{"/export", p.name}, elements...)...)
}

// record reads the lock's record from the server's disk; its token is empty if the lock is free.
func (p place) record(t testing.TB, name string) source.Record {
	t.Helper()
	content, err := os.ReadFile(p.stored(fslock.DefaultGroup, name, name+".locked"))
	if errors.Is(err, fs.ErrNotExist) {
		return source.Record{}
	}
	require.NoError(t, err)
	return fslock.ParseRecord(name, content)
}

// heartbeat returns the time of a lock's last heartbeat; zero if the lock is free.
func (p place) heartbeat(t testing.TB, name string) time.Time {
	t.Helper()
	info, err := os.Stat(p.stored(fslock.DefaultGroup, name))
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}
	}
	require.NoError(t, err)
	return info.ModTime()
}

// entries lists a directory on the server's disk; nil if it is absent.
func (p place) entries(t testing.TB, elements ...string) []string {
	t.Helper()
	entries, err := os.ReadDir(p.stored(elements...))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// requireEmpty checks that no lock is held and staging is empty.
func (p place) requireEmpty(t testing.TB) {
	t.Helper()
	require.Empty(t, p.entries(t, fslock.DefaultGroup))
	require.Empty(t, p.entries(t, ".multilock", "staging"))
}

// source opens a place's source as a process on a host does.
func (p place) source(t testing.TB, h host) *fslock.Source {
	t.Helper()
	return p.sourceThrough(t, h, h)
}

// sourceThrough opens a source with another filesystem between the lock and the host.
func (p place) sourceThrough(t testing.TB, h host, through vfs.FS) *fslock.Source {
	t.Helper()
	src, err := fslock.Open(fslock.Options{Base: p.on(h), FS: through, Self: h.identity(t)})
	require.NoError(t, err)
	t.Cleanup(func() { _ = src.Close() })
	return src
}

// dir opens a directory of the place through a host's client.
func (p place) dir(t testing.TB, h host, elements ...string) vfs.Dir {
	t.Helper()
	dir, err := h.OpenDir(p.on(h, elements...))
	require.NoError(t, err)
	t.Cleanup(func() { _ = dir.Close() })
	return dir
}

// try acquires a lock that must be free.
func try(t testing.TB, src multilock.Source, name string, opt multilock.Terms) *multilock.Lock {
	t.Helper()
	lock, err := multilock.TryAcquire(within(t), src, name, opt)
	require.NoError(t, err)
	t.Cleanup(func() { _ = lock.Release(context.Background()) })
	return lock
}

// acquire waits for a lock that must become free.
func acquire(t testing.TB, src multilock.Source, name string, opt multilock.Terms) *multilock.Lock {
	t.Helper()
	lock, err := multilock.Acquire(within(t), src, name, opt)
	require.NoError(t, err)
	t.Cleanup(func() { _ = lock.Release(context.Background()) })
	return lock
}

// requireHeldBy checks that an attempt fails because of the lock with this token.
func requireHeldBy(t testing.TB, src multilock.Source, name, token string) multilock.Observation {
	t.Helper()
	_, err := multilock.TryAcquire(within(t), src, name, multilock.Options{})
	var held *multilock.HeldError
	require.ErrorAs(t, err, &held)
	require.Equal(t, token, held.Observation.Record.Token)
	return held.Observation
}

// plant acquires a free lock that is only renewed if the test does so.
func plant(t testing.TB, src multilock.Source, name string, ttl time.Duration) source.Lease {
	t.Helper()
	contender, err := src.Contend(within(t), name, source.Claim{TTL: ttl, Heartbeat: ttl / 10}, multilock.StalePolicy{})
	require.NoError(t, err)
	lease, err := contender.Try(within(t))
	require.NoError(t, err)
	require.NoError(t, contender.Close())
	t.Cleanup(func() { _ = lease.Close() })
	return lease
}

// takenOver returns the evidence of every break in the history.
func takenOver(t testing.TB, src *fslock.Source) []string {
	t.Helper()
	events, err := source.Collect(src.History(within(t), time.Time{}))
	require.NoError(t, err)
	var why []string
	for _, e := range events {
		if e.What == source.EventBroke {
			why = append(why, e.Why)
		}
	}
	return why
}

// outside creates a directory that is not on the share. All hosts see the same one.
func outside(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/run", "outside-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// longOptions are for a lock that stays held during a test.
func longOptions() multilock.Options { return multilock.Options{TTL: long} }

// startServer starts nfsd again after "server stop".
func startServer(t testing.TB) {
	t.Helper()
	lab(t, "server", "start")
	wakeClients()
}

// wakeClients makes every host access the share. The grace period of v4 ends when the last client
// has reclaimed its state, which an idle client delays.
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

// breakAlive breaks a lock even if its holder may be alive.
func breakAlive(t testing.TB, src *fslock.Source) {
	t.Helper()
	_, err := multilock.Break(within(t), src, "job", multilock.BreakOptions{Alive: true})
	require.NoError(t, err)
}
