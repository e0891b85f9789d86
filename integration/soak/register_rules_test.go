//go:build linux

package soak_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/locktest"
)

func newRegister(t *testing.T) (r register, soon time.Duration) {
	t.Helper()
	return register{dir: t.TempDir()}, locktest.Now() + time.Hour
}

func TestRegisterConvictsASecondHolder(t *testing.T) {
	r, soon := newRegister(t)
	first, second := entry{Proc: "first", Until: soon}, entry{Proc: "second", Until: soon}
	require.NoError(t, r.enter("lock", first))
	require.ErrorIs(t, r.enter("lock", second), errDouble)
	require.NoError(t, r.leave("lock", first))
	require.NoError(t, r.enter("lock", second))
}

func TestRegisterConvictsWhoeverPushedAHolderOut(t *testing.T) {
	r, soon := newRegister(t)
	first, second := entry{Proc: "first", Until: soon}, entry{Proc: "second", Until: soon}
	require.NoError(t, r.enter("lock", first))
	require.NoError(t, r.condemn("first")) // though it lives on
	require.NoError(t, r.enter("lock", second))
	require.ErrorIs(t, r.extend("lock", first, entry{Proc: "first", Until: soon + 1}), errDouble)
	require.ErrorIs(t, r.leave("lock", first), errDouble)
}

// A holder that was silent for too long may find somebody else in its place, and
// may be found there.
func TestRegisterLetsTheSilentBeReplaced(t *testing.T) {
	r, soon := newRegister(t)
	silent := entry{Proc: "silent", Until: locktest.Now() + time.Millisecond}
	require.NoError(t, r.change("lock", func(entry) (entry, error) { return silent, nil }))
	require.Eventually(t, func() bool { return locktest.Now() > silent.Until }, time.Minute, time.Millisecond)
	require.NoError(t, r.enter("lock", entry{Proc: "next", Until: soon}))
	require.ErrorIs(t, r.extend("lock", silent, entry{Proc: "silent", Until: soon}), errLate)
	require.ErrorIs(t, r.enter("lock", silent), errLate)
}

func TestRegisterProlongsAStay(t *testing.T) {
	r, soon := newRegister(t)
	first, longer := entry{Proc: "first", Until: soon}, entry{Proc: "first", Until: soon + 1}
	require.NoError(t, r.enter("lock", first))
	require.NoError(t, r.extend("lock", first, longer))
	require.NoError(t, r.leave("lock", longer))
}
