package fslock_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// watchdog ends a test that hangs. A working test never comes near it, on any machine.
const watchdog = 2 * time.Minute

// long is a TTL that does not expire during a test.
const long = time.Hour

// fresh is an empty base directory that every user may read.
func fresh(t testing.TB) string {
	t.Helper()
	base, err := os.MkdirTemp("", "multilock-scene-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(base)) })
	require.NoError(t, os.Chmod(base, 0o755))
	return base
}

func open(t testing.TB, opt fslock.Options) *fslock.Source {
	t.Helper()
	src, err := fslock.Open(opt)
	require.NoError(t, err)
	t.Cleanup(func() { _ = src.Close() })
	return src
}

func self(t testing.TB) process.Identity {
	t.Helper()
	id, err := process.Self()
	require.NoError(t, err)
	return id
}

// elsewhere is this process as if it ran on another host: it cannot judge a process here by its pid.
func elsewhere(t testing.TB) process.Identity {
	id := self(t)
	id.Host, id.Machine, id.Boot = "elsewhere", "00000000feedf00d", "00000000-0000-4000-8000-00000000b007"
	return id
}

// views are the two ways to see a holder of this host: from its own host, and from a host that only sees
// its heartbeats.
func views(t *testing.T) map[string]process.Identity {
	return map[string]process.Identity{"same host": self(t), "silence only": elsewhere(t)}
}

// within is a context that ends with the watchdog.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	t.Cleanup(cancel)
	return ctx
}

func acquire(t testing.TB, src *fslock.Source, name string, opt multilock.Terms) *multilock.Lock {
	t.Helper()
	lock, err := multilock.Acquire(within(t), src, name, opt)
	require.NoError(t, err)
	t.Cleanup(func() { _ = lock.Release(context.Background()) })
	return lock
}

func observe(t testing.TB, src *fslock.Source, name string, policy source.StalePolicy) source.Observer {
	t.Helper()
	o, err := src.Observe(t.Context(), name, policy)
	require.NoError(t, err)
	t.Cleanup(func() { _ = o.Close() })
	return o
}

func look(t testing.TB, o source.Observer) source.Observation {
	t.Helper()
	seen, err := o.Look(t.Context())
	require.NoError(t, err)
	return seen
}

// lookUntil looks as often as a contender would, until the state is reached. It passes every observation
// before that to each, if each is not nil.
func lookUntil(t testing.TB, o source.Observer, want source.State, each func(source.Observation)) source.Observation {
	t.Helper()
	for end := time.Now().Add(watchdog); time.Now().Before(end); {
		seen := look(t, o)
		if seen.State == want {
			return seen
		}
		if each != nil {
			each(seen)
		}
		time.Sleep(min(seen.Next, time.Second))
	}
	require.FailNow(t, "the lock never was "+want.String())
	return source.Observation{}
}

// plant acquires the lock for another process: with any claim, and without renewals.
func plant(t testing.TB, src *fslock.Source, name string, claim source.Claim) source.Lease {
	t.Helper()
	c, err := src.Contend(t.Context(), name, claim, source.StalePolicy{})
	require.NoError(t, err)
	lease, err := c.Try(t.Context())
	require.NoError(t, err)
	require.NoError(t, c.Close())
	t.Cleanup(func() { _ = lease.Close() })
	return lease
}

func claim(holder process.Identity, ttl, heartbeat time.Duration) source.Claim {
	return source.Claim{Holder: source.Holder{Identity: holder}, TTL: ttl, Heartbeat: heartbeat}
}

// requireBroken checks that the lock was broken exactly once, and the evidence.
func requireBroken(t testing.TB, src *fslock.Source, name, evidence string) {
	t.Helper()
	events, err := source.Collect(src.History(t.Context(), time.Time{}))
	require.NoError(t, err)
	var why []string
	for _, e := range events {
		if e.What == source.EventBroke && e.Name == name {
			why = append(why, e.Why)
		}
	}
	require.Len(t, why, 1)
	require.Contains(t, why[0], evidence)
}

func longClaim() source.Claim { return source.Claim{TTL: long, Heartbeat: long / 10} }

func contend(t *testing.T, src *fslock.Source, name string, claim source.Claim) source.Contender {
	t.Helper()
	c, err := src.Contend(t.Context(), name, claim, source.StalePolicy{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func try(t *testing.T, c source.Contender) source.Lease {
	t.Helper()
	lease, err := c.Try(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = lease.Close() })
	return lease
}

func refuse(t *testing.T, c source.Contender) {
	t.Helper()
	_, err := c.Try(t.Context())
	require.ErrorIs(t, err, source.ErrHeld)
}

func contendAndTry(t *testing.T, src *fslock.Source, name string, claim source.Claim) source.Lease {
	t.Helper()
	c := contend(t, src, name, claim)
	lease := try(t, c)
	closed(t, c)
	return lease
}

func release(t *testing.T, lease source.Lease) {
	t.Helper()
	require.NoError(t, lease.Release(t.Context()))
}

func closed(t *testing.T, c io.Closer) {
	t.Helper()
	require.NoError(t, c.Close())
}

// at asks assessment about the operations of a kind, in a phase, whose path or target is path; about all of
// the kind if path is "".
func at(kind string, phase faultfs.Phase, path string, assessment func(faultfs.Op) error) faultfs.Injector {
	return func(op faultfs.Op) error {
		if op.Kind != kind || op.Phase != phase || (path != "" && path != op.Real && path != op.Target) {
			return nil
		}
		return assessment(op)
	}
}

// denying makes the first operations of a kind return an error instead of being carried out.
func denying(kind string, errno syscall.Errno, times int) faultfs.Injector {
	return denyingAt(kind, "", errno, times)
}

// denyingAt is denying for operations whose path contains part, as a trace shows it.
func denyingAt(kind, part string, errno syscall.Errno, times int) faultfs.Injector {
	return func(op faultfs.Op) error {
		if op.Kind != kind || op.Phase != faultfs.Before || times == 0 || !strings.Contains(op.Path, part) {
			return nil
		}
		times--
		return errno
	}
}

// wrapped is a file system that wraps each of its directories.
type wrapped struct {
	vfs.FS
	wrap func(vfs.Dir) vfs.Dir
}

func (w wrapped) OpenDir(path string) (vfs.Dir, error) { return w.opened(w.FS.OpenDir(path)) }

func (w wrapped) opened(d vfs.Dir, err error) (vfs.Dir, error) {
	if err != nil {
		return nil, err
	}
	return wrappedDir{w.wrap(d), w}, nil
}

type wrappedDir struct {
	vfs.Dir
	by wrapped
}

func (d wrappedDir) OpenDir(name string) (vfs.Dir, error) { return d.by.opened(d.Dir.OpenDir(name)) }

func (d wrappedDir) Enter(name string) (vfs.Dir, error) { return d.by.opened(d.Dir.Enter(name)) }

// someJob is a process group that cannot exist.
func someJob(self process.Identity) process.Group {
	return process.Group{Boot: self.Boot, Namespace: self.Namespace, PGID: 1 << 30, Start: 1}
}

// theDead is a process of this host that has ended: its number is this one's.
func theDead(self process.Identity) process.Identity {
	self.Start--
	return self
}

// abandonedBy is the claim of a dead process.
func abandonedBy(dead process.Identity) source.Claim {
	claim := longClaim()
	claim.Holder.Identity = dead
	return claim
}

// emptyDirectory is what a crash in the middle of a release leaves.
func emptyDirectory(t *testing.T, base, name string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Join(base, fslock.DefaultGroup, name), 0o777))
}

func committer(lease source.Lease) source.Committer { return lease.(source.Committer) }

// ended is a result as a holder would commit it.
func ended(record source.Record, attempt, exit int) source.Result {
	return source.Result{
		Name: record.Name, Token: record.Token, By: record.Holder.Identity, Attempt: attempt, Exit: exit,
		Start: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Duration: time.Second,
	}
}

func commit(t *testing.T, lease source.Lease, attempt int) {
	t.Helper()
	require.NoError(t, committer(lease).Commit(t.Context(), ended(lease.Record(), attempt, 0)))
}

func outcome(t *testing.T, lease source.Lease, want error) source.Result {
	t.Helper()
	result, err := committer(lease).Outcome(t.Context())
	require.ErrorIs(t, err, want)
	return result
}

func jobClaim() source.Claim {
	claim := longClaim()
	claim.Job = true
	return claim
}

func fence(t *testing.T, lease source.Lease) uint64 {
	t.Helper()
	number, err := lease.Fence(t.Context())
	require.NoError(t, err)
	return number
}

func requireEmpty(t testing.TB, src *fslock.Source, want bool) {
	t.Helper()
	empty, err := src.Empty(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, empty)
}

func revision(t *testing.T, src *fslock.Source) string {
	t.Helper()
	revision, err := src.Revision(t.Context())
	require.NoError(t, err)
	return revision
}

func eventAt(at time.Time, name string) source.Event {
	return source.Event{Time: at, What: source.EventCommitted, Name: name}
}
