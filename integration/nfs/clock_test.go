package nfs_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
)

// shiftClock steps the wall clock of the server, which is that of all hosts, too,
// but for those that have one of their own (hostWithClock).
func shiftClock(t testing.TB, seconds string) {
	t.Helper()
	lab(t, "server", "clock", seconds)
}

// The server's clock jumps an hour ahead, then two back. A living holder's last
// sign of life lies an hour in the past, then in the future; it stays the
// holder, and nothing that a waiter measures goes by a wall clock.
func TestClockJumpsUnderALivingHolder(t *testing.T) {
	eachVersionAtLength(t, func(t *testing.T, h host, others []host) {
		p := newPlace(t)
		holder, waiter := newActor(t, h, p), newActor(t, others[0], p)
		token := holder.must(t, order{Do: "acquire", Name: "job", TTL: shortTTL}).Token
		waiter.tell(t, order{Do: "acquire", Name: "job", TTL: long})
		t.Cleanup(func() { shiftClock(t, "+3600") })
		for _, step := range []string{"+3600", "-7200"} {
			shiftClock(t, step)
			p.requireGoesOn(t, holder, token)
		}
		holder.must(t, order{Do: "release"})
		require.NotEmpty(t, waiter.hear(t).Token)
		require.Empty(t, broken(t, p.source(t, h)))
		waiter.must(t, order{Do: "release"})
	})
}

// requireGoesOn waits for some more signs of life of a holder, which still is the holder.
func (p place) requireGoesOn(t *testing.T, holder *actor, token string) {
	t.Helper()
	for range 5 {
		sign := p.signOfLife(t, "job")
		eventually(t, "another sign of life", func() bool { return !p.signOfLife(t, "job").Equal(sign) })
	}
	require.Equal(t, token, p.record(t, "job").Token)
	holder.must(t, order{Do: "verify"})
}

// A dead holder whose last sign of life lies an hour in the future, because the
// server's clock was set back, is taken over all the same.
func TestClockIsSetBackAfterTheHolderDied(t *testing.T) {
	eachVersionAtLength(t, func(t *testing.T, h host, others []host) {
		p := newPlace(t)
		plant(t, p.source(t, h), "job", shortTTL)
		shiftClock(t, "-3600")
		t.Cleanup(func() { shiftClock(t, "+3600") })
		src := p.source(t, others[0])
		require.NoError(t, acquire(t, src, "job", longOptions()).Release(within(t)))
		require.Len(t, broken(t, src), 1)
	})
}

// The age of a lock and of its last sign of life are differences of the server's
// own times, however wrong its clock is when they are read.
func TestAgesByAWrongClock(t *testing.T) {
	eachVersion(t, func(t *testing.T, h host, others []host) {
		shiftClock(t, "-3600")
		t.Cleanup(func() { shiftClock(t, "+3600") })
		p := newPlace(t)
		plant(t, p.source(t, h), "job", long)
		seen, err := multilock.Inspect(within(t), p.source(t, others[0]), "job", multilock.Patience{})
		require.NoError(t, err)
		require.Less(t, seen.Age, watchdog)
		require.Less(t, seen.Silence, watchdog)
	})
}
