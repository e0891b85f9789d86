package nfs_test

import (
	"encoding/json"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

const day = 24 * time.Hour

// hostWithClock boots a host for one test, with a wall clock that is wrong by the given duration.
func hostWithClock(t testing.TB, h host, wrong time.Duration) host {
	t.Helper()
	odd := addHost(t, "odd", h.version, "hard")
	odd.setClock(t, wrong)
	return odd
}

// setClock sets how far the host's wall clock is ahead of the server's.
func (h host) setClock(t testing.TB, ahead time.Duration) {
	t.Helper()
	lab(t, "host", "clock", h.name, strconv.Itoa(int(ahead.Seconds())))
}

// output runs a command on a host and returns its output.
func (h host) output(t testing.TB, command ...string) string {
	t.Helper()
	out, err := exec.Command("on", append([]string{h.name}, command...)...).CombinedOutput()
	require.NoError(t, err, "%s: %s", command, out)
	return strings.TrimSpace(string(out))
}

// A host's clock is two days ahead, then two days behind. Comparing it with the server's times
// would make a live holder look dead at once, or a dead one alive for days. A live holder must keep
// its lock, whether the wrong clock is the waiter's or its own, and also when the clock jumps.
// Rule: I5, silence
func TestHostWhoseClockIsWrong(t *testing.T) {
	eachVersionAtLength(t, func(t *testing.T, h host, others []host) {
		odd := hostWithClock(t, h, 2*day)
		for _, c := range []struct{ holder, waiter host }{{others[0], odd}, {odd, others[0]}} {
			odd.setClock(t, 2*day)
			p := newPlace(t)
			holder, waiter := newActor(t, c.holder, p), newActor(t, c.waiter, p)
			token := holder.must(t, order{Do: "acquire", Name: "job", TTL: shortTTL}).Token
			waiter.Tell(t, order{Do: "acquire", Name: "job", TTL: long})
			for _, ahead := range []time.Duration{2 * day, -2 * day} {
				odd.setClock(t, ahead)
				requireNaiveAge(t, p, odd, ahead)
				p.requireGoesOn(t, holder, token)
			}
			holder.must(t, order{Do: "release"})
			require.NotEmpty(t, waiter.done(t).Token)
			require.Empty(t, takenOver(t, p.source(t, others[0])))
			waiter.must(t, order{Do: "release"})
		}
	})
}

// requireNaiveAge checks that the naive age of a lock, computed with the observing host's clock, is
// wrong.
func requireNaiveAge(t *testing.T, p place, odd host, ahead time.Duration) {
	t.Helper()
	now := odd.output(t, "date", "+%s")
	given := odd.output(t, "stat", "-c", "%Y", p.on(odd, fslock.DefaultGroup, "job"))
	age := time.Duration(number(t, now)-number(t, given)) * time.Second
	require.InDelta(t, ahead, age, float64(watchdog))
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// A host whose clock is two days ahead does not mistake new files for day-old leftovers, and shows
// ages by the server's times.
// Rule: I5, staging
func TestCommandOnAHostWhoseClockIsAhead(t *testing.T) {
	needCommand(t)
	h, other := hosts()[0], hosts()[1]
	odd := hostWithClock(t, h, 2*day)
	p := newPlace(t)
	lease := plant(t, p.source(t, other), "job", long)
	contender, err := p.source(t, other).Contend(t.Context(), "job", source.Claim{TTL: long}, multilock.StalePolicy{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = contender.Close() })
	p.multilockOn(t, odd, "clean")
	require.Len(t, p.entries(t, ".multilock", "staging"), 1, "a waiter's staged lock was removed as a leftover")
	require.Equal(t, lease.Record().Token, p.record(t, "job").Token)
	var status struct {
		Locks []struct {
			Age     float64 `json:"held_seconds"`
			Silence float64 `json:"heartbeat_age_seconds"`
		}
	}
	require.NoError(t, json.Unmarshal(p.multilockOn(t, odd, "status", "--json"), &status))
	require.Len(t, status.Locks, 1)
	for _, seconds := range []float64{status.Locks[0].Age, status.Locks[0].Silence} {
		require.InDelta(t, 0, seconds, watchdog.Seconds())
	}
}

// "Once a day across all hosts" means the server's day: a host whose date is two days ahead or
// behind does not run the job again.
// Rule: I5, ticks
func TestTickOnAHostWithAnotherDay(t *testing.T) {
	needCommand(t)
	h, other := hosts()[0], hosts()[1]
	odd := hostWithClock(t, h, 2*day)
	p := newPlace(t)
	run := func(h host) string {
		return string(p.multilockOn(t, h, "run", "-q", "-n", "nightly", "--every", "1d", "--", "echo", "ran"))
	}
	require.Equal(t, "ran\n", run(other))
	require.Empty(t, run(odd))
	odd.setClock(t, -2*day)
	require.Empty(t, run(odd))
}

// shiftClock steps the wall clock of the server. All hosts share it, except those with a clock of
// their own (hostWithClock).
func shiftClock(t testing.TB, seconds string) {
	t.Helper()
	lab(t, "server", "clock", seconds)
}

// requireGoesOn waits for more heartbeats of a holder, and checks that it still holds the lock.
func (p place) requireGoesOn(t *testing.T, holder remote, token string) {
	t.Helper()
	for range 5 {
		sign := p.heartbeat(t, "job")
		eventually(t, "another heartbeat", func() bool { return !p.heartbeat(t, "job").Equal(sign) })
	}
	require.Equal(t, token, p.record(t, "job").Token)
	holder.must(t, order{Do: "verify"})
}

// The age of a lock and of its last heartbeat are differences between the server's own times, so
// they are right however wrong the server's clock is.
// Rule: I5, server-clock
func TestAgesByAWrongClock(t *testing.T) {
	eachVersion(t, func(t *testing.T, h host, others []host) {
		shiftClock(t, "-3600")
		t.Cleanup(func() { shiftClock(t, "+3600") })
		p := newPlace(t)
		plant(t, p.source(t, h), "job", long)
		seen, err := multilock.Inspect(within(t), p.source(t, others[0]), "job", multilock.StalePolicy{})
		require.NoError(t, err)
		require.Less(t, seen.Age, watchdog)
		require.Less(t, seen.Silence, watchdog)
	})
}
