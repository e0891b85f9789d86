package nfs_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
)

// squash makes root on the hosts nobody on the share.
func squash(t testing.TB) {
	t.Helper()
	lab(t, "server", "squash", "on")
	t.Cleanup(func() { lab(t, "server", "squash", "off") })
}

// Where root is nobody, it locks like any other user where nobody may write...
func TestSquashedRootWhereNobodyMayWrite(t *testing.T) {
	eachVersion(t, func(t *testing.T, h host, others []host) {
		p := newPlace(t)
		squash(t)
		lock := try(t, p.source(t, h), "job", longOptions())
		requireHeldBy(t, p.source(t, others[0]), "job", lock.Record().Token)
		require.NoError(t, lock.Verify(within(t)))
		require.NoError(t, lock.Release(within(t)))
		p.requireEmpty(t)
	})
}

// ... and is told why where it may not, which is not taken for a lock.
func TestSquashedRootWhereNobodyMayNotWrite(t *testing.T) {
	eachVersion(t, func(t *testing.T, h host, _ []host) {
		p := newPlace(t)
		require.NoError(t, os.Chmod(p.stored(), 0o755))
		squash(t)
		_, err := multilock.TryAcquire(within(t), p.source(t, h), "job", longOptions())
		require.ErrorIs(t, err, syscall.EACCES)
		require.NotErrorIs(t, err, multilock.ErrHeld)
		require.ErrorContains(t, err, "check the permissions")
		require.Empty(t, p.entries(t))
	})
}

// A lock that root took before it became nobody is held for nobody, too.
func TestSquashedRootMeetsALock(t *testing.T) {
	eachVersion(t, func(t *testing.T, h host, others []host) {
		p := newPlace(t)
		lock := try(t, p.source(t, h), "job", longOptions())
		for _, dir := range []string{".multilock", ".multilock/staging", fslock.DefaultGroup} {
			require.NoError(t, os.Chmod(p.stored(dir), 0o777))
		}
		lab(t, "server", "squash", "on")
		requireHeldBy(t, p.source(t, others[0]), "job", lock.Record().Token)
		lab(t, "server", "squash", "off")
		require.NoError(t, lock.Verify(within(t)))
	})
}

// as is the command that makes an actor another user.
func as(user string) []string {
	return []string{"setpriv", "--reuid", user, "--regid", user, "--clear-groups"}
}

// In a sticky group nobody can remove or replace what another user's crash left.
// The error says what to change.
func TestStickyGroup(t *testing.T) {
	eachVersion(t, func(t *testing.T, h host, others []host) {
		p := newPlace(t)
		for _, dir := range []string{".multilock", ".multilock/staging", ".multilock/groups", fslock.DefaultGroup} {
			require.NoError(t, os.Mkdir(p.stored(dir), 0o777))
			require.NoError(t, os.Chmod(p.stored(dir), 0o777))
		}
		require.NoError(t, os.Chmod(p.stored(fslock.DefaultGroup), 0o777|os.ModeSticky))
		alice := startActor(t, h, order{Do: "open", Path: p.on(h)}, as("alice")...)
		bob := startActor(t, others[0], order{Do: "open", Path: p.on(others[0])}, as("bob")...)
		alice.must(t, order{Do: "acquire", Name: "job", TTL: long})
		require.Contains(t, bob.do(t, order{Do: "try", Name: "job"}).Error, "is held by "+h.name)
		require.NoError(t, os.Remove(p.stored(fslock.DefaultGroup, "job", "job.locked")))

		refused := bob.do(t, order{Do: "try", Name: "job"}).Error
		require.Contains(t, refused, "without the sticky bit")
		require.NotContains(t, refused, "held")
		require.NoError(t, os.Chmod(p.stored(fslock.DefaultGroup), 0o777))
		bob.must(t, order{Do: "try", Name: "job", TTL: long})
		bob.must(t, order{Do: "release"})
	})
}

// With the group on another mount, a rename crosses mounts, even within one export.
func TestGroupOnABindMount(t *testing.T) {
	eachVersion(t, func(t *testing.T, h host, _ []host) {
		p := newPlace(t)
		require.NoError(t, os.Mkdir(p.stored(fslock.DefaultGroup), 0o777))
		group := p.on(h, fslock.DefaultGroup)
		lab(t, "on", h.name, "mount", "--bind", group, group)
		t.Cleanup(func() { lab(t, "on", h.name, "umount", group) })
		src := p.source(t, h)
		_, err := multilock.TryAcquire(within(t), src, "job", longOptions())
		require.NoError(t, src.Close())
		require.ErrorIs(t, err, syscall.EXDEV)
		require.NotErrorIs(t, err, multilock.ErrHeld)
		require.ErrorContains(t, err, "must be on one filesystem")
		p.requireEmpty(t)
	})
}
