package nfs_test

import (
	"context"
	"errors"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/vfs/faultfs"
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

// attempt is an acquisition that is held up before its rename, and before it
// takes that back.
type attempt struct {
	renaming, undoing *gate
	answer            chan error
}

func beginAttempt(t *testing.T, p place, h host, opt multilock.Options) *attempt {
	t.Helper()
	src, faulty := p.gatedSource(t, h)
	a := &attempt{newGate(t, "rename", ""), newGate(t, "unlink", "job.locked"), make(chan error, 1)}
	faulty.Inject(func(op faultfs.Op) error { return errors.Join(a.renaming.inject(op), a.undoing.inject(op)) })
	go func() {
		_, err := multilock.TryAcquire(context.Background(), src, "job", opt)
		a.answer <- err
	}()
	a.renaming.await(t)
	return a
}

// The lock then says that it cannot tell, never that it is free or held. What the
// rename leaves is a lock like any other whose holder is silent: it is taken over.
func TestAcquisitionThatIsCarriedOutLater(t *testing.T) {
	eachSoftHost(t, func(t *testing.T, h, other host) {
		p := newPlace(t)
		a := beginAttempt(t, p, h, multilock.Options{TTL: shortTTL})
		z := raise(t, h, a.renaming.letPass)
		a.undoing.letPass()
		err := <-a.answer
		require.ErrorIs(t, err, multilock.ErrUnsure)
		require.NotErrorIs(t, err, multilock.ErrHeld)
		z.awaken(t)
		eventually(t, "the rename is carried out", func() bool { return p.record(t, "job").Token != "" })

		require.NoError(t, acquire(t, p.source(t, other), "job", longOptions()).Release(within(t)))
		require.Empty(t, p.entries(t, fslock.DefaultGroup))
	})
}

// If the server is back before the attempt is over, the attempt is taken back,
// and nothing is left of it.
func TestAcquisitionThatIsTakenBack(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 12 seconds; TestAcquisitionThatIsCarriedOutLater has the worse of the two ends")
	}
	eachSoftHost(t, func(t *testing.T, h, other host) {
		p := newPlace(t)
		a := beginAttempt(t, p, h, longOptions())
		z := raise(t, h, a.renaming.letPass)
		a.undoing.await(t)
		z.awaken(t)
		eventually(t, "the rename is carried out", func() bool { return p.record(t, "job").Token != "" })
		a.undoing.letPass()
		err := <-a.answer
		require.ErrorIs(t, err, syscall.EIO)
		require.NotErrorIs(t, err, multilock.ErrUnsure)
		require.NoError(t, try(t, p.source(t, other), "job", longOptions()).Release(within(t)))
		p.requireEmpty(t)
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
