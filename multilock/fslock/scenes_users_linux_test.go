package fslock_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/fslock"
)

// Two users, neither of them root.
const (
	alice = 65533
	bob   = 65532
)

// openToAll makes a base directory whose every directory anybody may write to,
// as a site would prepare it for several users.
func openToAll(t *testing.T) string {
	t.Helper()
	base := fresh(t)
	for _, dir := range []string{fslock.DefaultGroup, ".multilock", ".multilock/staging", ".multilock/groups"} {
		require.NoError(t, os.Mkdir(filepath.Join(base, dir), 0o777))
		require.NoError(t, os.Chmod(filepath.Join(base, dir), 0o777))
	}
	return base
}

func twoUsers(t *testing.T, base string, aliceUmask int) (a, b *marionette) {
	a = newPuppet(t, setting{UID: alice}, order{Base: base, Umask: aliceUmask})
	return a, newPuppet(t, setting{UID: bob}, order{Base: base})
}

// Signal 0 to another user's process answers EPERM: it is there.
func TestHolderOfAnotherUserIsAlive(t *testing.T) {
	requireRoot(t, "two other users")
	a, b := twoUsers(t, openToAll(t), 0)
	a.must(t, order{Do: "acquire", Name: "job", TTL: long})

	seen := b.must(t, order{Do: "look", Name: "job"})
	require.Equal(t, "held", seen.State)
	require.Contains(t, seen.Why, "is running on this host")
	require.Contains(t, b.do(t, order{Do: "try", Name: "job"}).Is, "held")

	a.end()
	b.must(t, order{Do: "try", Name: "job", TTL: long})
	b.must(t, order{Do: "release"})
}

// A lock directory that only its owner may open is held, whatever is in it, and
// nobody else can break it.
func TestPrivateLockDirectoryIsHeldBySomebodyUnknown(t *testing.T) {
	requireRoot(t, "two other users")
	base := openToAll(t)
	a, b := twoUsers(t, base, 0o077)
	a.must(t, order{Do: "acquire", Name: "job", TTL: long})
	hourAgo := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(base, fslock.DefaultGroup, "job"), hourAgo, hourAgo))

	for _, maxAge := range []time.Duration{0, time.Second} {
		seen := b.must(t, order{Do: "look", Name: "job", MaxAge: maxAge})
		require.Equal(t, "held", seen.State)
		require.Equal(t, "somebody unknown", seen.Holder)
		require.Contains(t, seen.Why, "uid 65533")
		require.Contains(t, seen.Why, "private")
		refused := b.do(t, order{Do: "try", Name: "job", MaxAge: maxAge})
		require.Contains(t, refused.Is, "held")
	}
	a.must(t, order{Do: "verify"})
	a.must(t, order{Do: "release"})
	b.must(t, order{Do: "try", Name: "job", TTL: long})
}

// In a sticky directory nobody may replace another user's empty directory. Both
// the breaker and the next contender meet that, and are told what to change.
func TestStickyGroupDirectoryIsNamedInTheError(t *testing.T) {
	requireRoot(t, "two other users")
	base := openToAll(t)
	group := filepath.Join(base, fslock.DefaultGroup)
	require.NoError(t, os.Chmod(group, 0o777|os.ModeSticky))
	a, b := twoUsers(t, base, 0)
	a.must(t, order{Do: "acquire", Name: "job", TTL: long})
	require.Contains(t, b.do(t, order{Do: "try", Name: "job"}).Is, "held")
	a.end()

	refused := b.do(t, order{Do: "try", Name: "job"})
	require.Contains(t, refused.Error, "sticky")
	require.NotContains(t, refused.Is, "held")
	requireEmptyDir(t, filepath.Join(base, ".multilock", "staging"))

	require.NoError(t, os.Chmod(group, 0o777))
	b.must(t, order{Do: "try", Name: "job", TTL: long})
}

// What another user made with a narrow umask is told as what it is.
func TestBaseThatAnotherUserKeepsForHimself(t *testing.T) {
	requireRoot(t, "two other users")
	base := fresh(t)
	a, b := twoUsers(t, base, 0o022)
	a.must(t, order{Do: "acquire", Name: "job", TTL: long})
	before := tree(t, base)
	refused := b.do(t, order{Do: "try", Name: "other"})
	require.Contains(t, refused.Is, "EACCES")
	require.Contains(t, refused.Error, "permissions")
	require.Equal(t, before, tree(t, base))
}

func requireEmptyDir(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(path)
	require.NoError(t, err)
	require.Empty(t, entries)
}
