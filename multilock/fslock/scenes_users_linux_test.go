package fslock_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
)

// Two users, neither of them root.
const (
	alice = 65533
	bob   = 65532
)

// anybody trusts everybody.
func anybody() shareddir.Trust { return shareddir.Trust{Anybody: true} }

// openToAll makes a base directory in which everybody may write to every directory.
func openToAll(t *testing.T) string {
	t.Helper()
	base := fresh(t)
	require.NoError(t, os.Chmod(base, 0o777))
	for _, dir := range []string{fslock.DefaultGroup, ".multilock", ".multilock/staging", ".multilock/groups"} {
		require.NoError(t, os.Mkdir(filepath.Join(base, dir), 0o777))
		require.NoError(t, os.Chmod(filepath.Join(base, dir), 0o777))
	}
	return base
}

func twoUsers(t *testing.T, base string, aliceUmask int) (a, b neighbour) {
	a = newNeighbour(t, setting{UID: alice}, order{Base: base, Umask: aliceUmask, Trust: anybody()})
	return a, newNeighbour(t, setting{UID: bob}, order{Base: base, Trust: anybody()})
}

// Signal 0 to another user's process returns EPERM: the process exists.
// Rule: process-gone
func TestHolderOfAnotherUserIsAlive(t *testing.T) {
	requireRoot(t, "two other users")
	a, b := twoUsers(t, openToAll(t), 0)
	a.must(t, order{Do: "acquire", Name: "job", TTL: long})

	seen := b.must(t, order{Do: "look", Name: "job"})
	require.Equal(t, "held", seen.State)
	require.Contains(t, seen.Why, "is running on this host")
	require.Contains(t, b.do(t, order{Do: "try", Name: "job"}).Is, "held")

	a.End()
	b.must(t, order{Do: "try", Name: "job", TTL: long})
	b.must(t, order{Do: "release"})
}

// A lock directory that only its owner may open is held, whatever it contains, and no other user can break
// it.
// Rule: I6
func TestPrivateLockDirectoryIsHeldBySomebodyUnknown(t *testing.T) {
	requireRoot(t, "two other users")
	base := openToAll(t)
	a, b := twoUsers(t, base, 0o077)
	a.must(t, order{Do: "acquire", Name: "job", TTL: long})
	age(t, filepath.Join(base, fslock.DefaultGroup, "job"))

	for _, maxAge := range []time.Duration{0, time.Second} {
		seen := b.must(t, order{Do: "look", Name: "job", MaxAge: maxAge})
		require.Equal(t, "held", seen.State)
		require.Equal(t, "an unknown process", seen.Holder)
		require.Contains(t, seen.Why, "uid 65533")
		require.Contains(t, seen.Why, "private")
		refused := b.do(t, order{Do: "try", Name: "job", MaxAge: maxAge})
		require.Contains(t, refused.Is, "held")
	}
	a.must(t, order{Do: "verify"})
	a.must(t, order{Do: "release"})
	b.must(t, order{Do: "try", Name: "job", TTL: long})
}

// In a sticky directory no user may replace another user's empty directory. Both the breaker and the next
// contender hit that, and report what to change.
// Rule: break, rename
func TestStickyGroupDirectoryIsNamedInTheError(t *testing.T) {
	requireRoot(t, "two other users")
	base := openToAll(t)
	group := filepath.Join(base, fslock.DefaultGroup)
	require.NoError(t, os.Chmod(group, 0o777|os.ModeSticky))
	a, b := twoUsers(t, base, 0)
	a.must(t, order{Do: "acquire", Name: "job", TTL: long})
	require.Contains(t, b.do(t, order{Do: "try", Name: "job"}).Is, "held")
	a.End()

	refused := b.do(t, order{Do: "try", Name: "job"})
	require.Contains(t, refused.Error, "sticky")
	require.NotContains(t, refused.Is, "held")
	require.Empty(t, namesIn(t, filepath.Join(base, ".multilock", "staging")))

	require.NoError(t, os.Chmod(group, 0o777))
	b.must(t, order{Do: "try", Name: "job", TTL: long})
}

// asUser calls do in a thread that the filesystem treats as another user's. The thread is discarded
// afterwards.
func asUser(t *testing.T, uid int, do func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := unix.Setfsuid(uid)
		if err == nil {
			do()
		}
		done <- err
	}()
	require.NoError(t, <-done)
}

// An observer's look at an orphaned entry does not change how it judges the private lock that comes after
// it.
// Rule: I6, orphan
func TestPrivateLockAfterAnOrphanIsHeld(t *testing.T) {
	requireRoot(t, "another user")
	base := openToAll(t)
	dir := filepath.Join(base, fslock.DefaultGroup, "job")
	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".nfs0001"), nil, 0o644))
	o := observe(t, open(t, fslock.Options{Base: base, Trust: anybody()}), "job", source.StalePolicy{})
	var orphan, private source.Observation
	var err1, err2 error
	asUser(t, bob, func() { orphan, err1 = o.Look(t.Context()) })
	require.NoError(t, err1)
	require.Contains(t, orphan.Why, "no lock file")

	require.NoError(t, os.RemoveAll(dir))
	a := newNeighbour(t, setting{UID: alice}, order{Base: base, Umask: 0o077, Trust: anybody()})
	a.must(t, order{Do: "acquire", Name: "job", TTL: long})
	age(t, dir)
	asUser(t, bob, func() { private, err2 = o.Look(t.Context()) })
	require.NoError(t, err2)
	require.Equal(t, source.StateHeld.String(), private.State.String(), private.Why)
	require.Contains(t, private.Why, "private")
}
