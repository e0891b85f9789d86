package nfs_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/fslock"
)

// squash makes the server treat root on the hosts as an unprivileged user.
func squash(t testing.TB) {
	t.Helper()
	lab(t, "server", "squash", "on")
	t.Cleanup(func() { lab(t, "server", "squash", "off") })
}

// nobody is the uid to which the server maps root.
const nobody = 65534

// A squashed root locks like any other user in a base that other users cannot write: it trusts the
// files that the server reports as its own.
// Rule: none (docs/security.md)
func TestSquashedRootWhereNobodyMayWrite(t *testing.T) {
	eachVersion(t, func(t *testing.T, h host, others []host) {
		p := newPlace(t)
		require.NoError(t, os.Chown(p.stored(), nobody, nobody))
		squash(t)
		lock := try(t, p.source(t, h), "job", longOptions())
		requireHeldBy(t, p.source(t, others[0]), "job", lock.Record().Token)
		require.NoError(t, lock.Verify(within(t)))
		require.NoError(t, lock.Release(within(t)))
		p.requireEmpty(t)
	})
}

// A lock acquired by root before it was squashed also counts as held for the squashed user.
// Rule: none (docs/security.md)
func TestSquashedRootMeetsALock(t *testing.T) {
	eachVersion(t, func(t *testing.T, h host, others []host) {
		p := newPlace(t)
		lock := try(t, p.source(t, h), "job", longOptions())
		for _, dir := range []string{"", ".multilock", ".multilock/staging", fslock.DefaultGroup} {
			require.NoError(t, os.Chown(p.stored(dir), nobody, nobody))
		}
		lab(t, "server", "squash", "on")
		requireHeldBy(t, p.source(t, others[0]), "job", lock.Record().Token)
		lab(t, "server", "squash", "off")
		require.NoError(t, lock.Verify(within(t)))
	})
}
