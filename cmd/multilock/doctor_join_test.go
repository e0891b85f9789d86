//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// hostIn is a host that sees the locks in a directory: a process of its own, as far
// as the others can tell.
func hostIn(t *testing.T, base, name string) *openedSource {
	t.Helper()
	self := process.Identity{Host: name, Machine: "machine-of-" + name, Boot: "boot-of-" + name, Namespace: "pid:[1]", PID: 7, Start: 1}
	locks, err := fslock.Open(fslock.Options{Base: base, Self: self})
	require.NoError(t, err)
	t.Cleanup(func() { _ = locks.Close() })
	return &openedSource{locks: locks, self: self, opt: common{base: base, group: fslock.DefaultGroup, user: "ada"}}
}

// quickly is a pace at which nobody has to wait for long.
func quickly(hosts int) joinPace {
	return joinPace{expect: hosts, wait: watchdog, limit: watchdog, pause: 2 * time.Millisecond, hold: 20 * time.Millisecond, turns: 3, ttl: 2 * time.Second}
}

// attended is what a host took home from a meeting.
type attended struct {
	*meeting
	err error
}

func (a attended) severities() []string { return subjects(a.findings("HERE")) }

func (a attended) text() string { return fmt.Sprint(a.findings("HERE")) }

// gather lets hosts meet, and returns when all have left.
func gather(ctx context.Context, pace joinPace, hosts ...*openedSource) []attended {
	all := make([]attended, len(hosts))
	var group sync.WaitGroup
	for i, src := range hosts {
		group.Go(func() {
			m := &meeting{src: src, pace: pace}
			all[i] = attended{m, m.run(ctx)}
		})
	}
	group.Wait()
	return all
}

func hostsIn(t *testing.T, base string, names ...string) []*openedSource {
	t.Helper()
	var all []*openedSource
	for _, name := range names {
		all = append(all, hostIn(t, base, name))
	}
	return all
}

// requireNothingLeft allows for the counter of the fencing numbers, and for the
// history of what was broken.
func requireNothingLeft(t *testing.T, base string) {
	t.Helper()
	require.Empty(t, namesIn(t, filepath.Join(base, ".locks")))
	require.Empty(t, namesIn(t, filepath.Join(base, ".multilock", "staging")))
	for _, dir := range namesIn(t, filepath.Join(base, ".multilock", "groups", ".locks")) {
		require.Contains(t, []string{"fence", "history"}, dir)
	}
	require.Equal(t, []string{joinName}, namesIn(t, filepath.Join(base, ".multilock", "groups", ".locks", "fence")))
}

// Hosts that see the same locks find out that these keep them apart.
func TestJoin(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	numbers := map[uint64]bool{}
	for _, a := range gather(t.Context(), quickly(3), hostsIn(t, base, "alpha", "beta", "gamma")...) {
		require.NoError(t, a.err)
		require.Equal(t, []string{"fine host", "fine host", "fine join"}, a.severities(), a.text())
		v := a.view()
		require.GreaterOrEqual(t, v.Turns, 3)
		require.Len(t, v.Fences, v.Turns)
		for _, number := range v.Fences {
			require.False(t, numbers[number], "number %d twice", number)
			numbers[number] = true
		}
		for _, h := range v.Hosts {
			require.Equal(t, endComplete, h.End)
			require.Positive(t, h.Refused)
			require.GreaterOrEqual(t, h.Turns, 3)
			require.False(t, h.SameHost)
			require.NotNil(t, h.Clock)
			require.NotEqual(t, a.src.self.Host, h.Host)
		}
	}
	requireNothingLeft(t, base)
}

// A source that promises nothing, and has neither numbers nor a clock, is tried.
func TestJoinWhereThereIsNothingButLocks(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	hosts := hostsIn(t, base, "alpha", "beta")
	for _, src := range hosts {
		src.locks = bare{src.locks.(*fslock.Source)}
	}
	for _, a := range gather(t.Context(), quickly(2), hosts...) {
		require.NoError(t, a.err)
		require.Equal(t, []string{"fine host", "fine join"}, a.severities(), a.text())
		require.Empty(t, a.view().Fences)
		require.Nil(t, a.view().Hosts[0].Clock)
	}
	require.Empty(t, namesIn(t, filepath.Join(base, ".locks")))
}

// Two hosts that mount different places under one name wait for each other in vain.
func TestJoinInDifferentPlaces(t *testing.T) {
	t.Parallel()
	pace := quickly(2)
	pace.wait = 50 * time.Millisecond
	one, other := t.TempDir(), t.TempDir()
	for _, a := range gather(t.Context(), pace, hostIn(t, one, "alpha"), hostIn(t, other, "beta")) {
		require.ErrorAs(t, a.err, new(*joinError))
		require.Equal(t, []string{"unusable join"}, a.severities())
		require.Contains(t, a.text(), "no other host showed up in 50ms; this host looks at HERE")
	}
	require.Empty(t, namesIn(t, filepath.Join(one, ".locks")))
	require.Empty(t, namesIn(t, filepath.Join(other, ".locks")))
}

// Where one of three is missing, the two that are there say who came.
func TestJoinWithoutOneOfThem(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	pace := quickly(3)
	pace.wait = 300 * time.Millisecond
	for _, a := range gather(t.Context(), pace, hostsIn(t, base, "alpha", "beta")...) {
		require.Contains(t, []string{"[fine host unusable join]", "[warning host unusable join]"}, fmt.Sprint(a.severities()), a.text())
		require.Regexp(t, `only 1 of 2 other hosts showed up in 300ms: (alpha|beta) pid 7; this host looks at HERE|no other host showed up`, a.text())
	}
}

// Those that run on one host show nothing about others, and clones have to be told
// apart.
func TestJoinOfRelatives(t *testing.T) {
	t.Parallel()
	for what, boot := range map[string]string{"runs on this very host": "boot-of-alpha", "as clones have": "another boot"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			base := t.TempDir()
			alpha := hostIn(t, base, "alpha")
			twin := alpha.self
			twin.PID, twin.Boot, twin.Namespace = 8, boot, "pid:[2]"
			locks, err := fslock.Open(fslock.Options{Base: base, Self: twin})
			require.NoError(t, err)
			defer locks.Close()
			for _, a := range gather(t.Context(), quickly(2), alpha, &openedSource{locks: locks, self: twin, opt: alpha.opt}) {
				require.NoError(t, a.err)
				require.Equal(t, []string{"warning host", "fine join"}, a.severities(), a.text())
				require.Contains(t, a.text(), what)
			}
		})
	}
}

// deadIn leaves locks behind as a participant does that is killed.
func deadIn(t *testing.T, src *openedSource, ttl time.Duration, names ...string) {
	t.Helper()
	for _, name := range names {
		lock, err := multilock.TryAcquire(t.Context(), src.locks, name, multilock.Options{TTL: ttl, Command: joinCommand})
		require.NoError(t, err)
		require.NoError(t, lock.Detach())
	}
}

// One that dies in its turn is reported, what it held is cleared away, and the
// others come to their end.
func TestJoinOutlivesAParticipant(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	pace := quickly(3)
	deadIn(t, hostIn(t, base, "gamma"), pace.ttl, seatName(1), joinName)
	for _, a := range gather(t.Context(), pace, hostsIn(t, base, "alpha", "beta")...) {
		require.NoError(t, a.err)
		require.ElementsMatch(t, []string{"warning host", "fine host", "fine join"}, a.severities(), a.text())
		require.Regexp(t, `gamma pid 7: it went away in the middle: no sign of life for`, a.text())
	}
	requireNothingLeft(t, base)
}

// Alone after that, a host has shown nothing.
func TestJoinWithADeadOneOnly(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	pace := quickly(2)
	deadIn(t, hostIn(t, base, "gamma"), pace.ttl, seatName(1))
	a := gather(t.Context(), pace, hostIn(t, base, "alpha"))[0]
	require.NoError(t, a.err)
	require.Equal(t, []string{"warning host", "unusable join"}, a.severities(), a.text())
	require.Contains(t, a.text(), "no other host stayed to the end")
	requireNothingLeft(t, base)
}

// What was left by a meeting of which nobody lives any more is in nobody's way, and
// is cleared away. Other locks are nobody's business here.
func TestJoinAfterAMeetingThatDied(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	pace := quickly(2)
	dead := hostIn(t, base, "omega")
	deadIn(t, dead, 100*time.Millisecond, seatName(1), markName(1, toldMark), markName(1, readMark), seatName(9), joinName)
	require.NoError(t, os.Mkdir(filepath.Join(base, ".locks", seatName(4)), 0o700)) // what a release may leave
	require.Eventually(t, func() bool {
		seen, err := multilock.Inspect(t.Context(), dead.locks, markName(1, toldMark), multilock.Patience{})
		return err == nil && seen.State != multilock.StateHeld
	}, watchdog, poll, "else nobody would take that seat")
	others := []string{"doctor-join-", "doctor-join-1-x", "doctor-join-x", "doctor-joiner", "nightly"}
	deadIn(t, dead, 100*time.Millisecond, others...)
	for _, a := range gather(t.Context(), pace, hostsIn(t, base, "alpha", "beta")...) {
		require.NoError(t, a.err)
		require.Equal(t, "fine join", a.severities()[len(a.severities())-1], a.text())
		require.NotContains(t, a.text(), string(source.SeverityUnusable))
	}
	require.Equal(t, others, namesIn(t, filepath.Join(base, ".locks")))
}

// Ctrl-C gives everything back at once, and the others say who left.
func TestJoinIsInterrupted(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	ctx, interrupt := context.WithCancelCause(t.Context())
	pace := quickly(2)
	pace.hold = watchdog / 2 // it is interrupted in the first turn
	done := make(chan attended)
	m := &meeting{src: hostIn(t, base, "alpha"), pace: pace}
	go func() { done <- attended{m, m.run(ctx)} }()
	beta := hostIn(t, base, "beta")
	deadIn(t, beta, time.Hour, seatName(2)) // alpha waits for nobody else
	look := func() source.State {
		seen, err := multilock.Inspect(t.Context(), beta.locks, joinName, multilock.Patience{})
		require.NoError(t, err)
		return seen.State
	}
	require.Eventually(t, func() bool { return look() == multilock.StateHeld }, watchdog, poll)
	interrupt(console.Signalled(syscall.SIGINT))
	a := <-done
	require.ErrorAs(t, a.err, new(*console.SignalError))
	require.Equal(t, []string{seatName(2)}, namesIn(t, filepath.Join(base, ".locks")))
}

// One that leaves early is missed by the others.
func TestJoinIsLeft(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	beta := hostIn(t, base, "beta")
	lock, err := multilock.TryAcquire(t.Context(), beta.locks, seatName(5), multilock.Options{})
	require.NoError(t, err)
	m := &meeting{src: hostIn(t, base, "alpha"), pace: quickly(2)}
	m.pace.turns = 1000 // it does not come to an end by itself
	done := make(chan error)
	go func() { done <- m.run(t.Context()) }()
	require.Eventually(t, func() bool { return m.seated.Load() == 2 }, watchdog, poll)
	require.NoError(t, lock.Release(t.Context()))
	require.NoError(t, <-done)
	a := attended{meeting: m}
	require.Equal(t, []string{"warning host", "unusable join"}, a.severities())
	require.Contains(t, a.text(), "beta pid 7: it left before it had its turns")
}

// A host that lost its seat, because it slept, says so instead of going on.
func TestJoinWithoutASeat(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	other := hostIn(t, base, "beta")
	m := &meeting{src: hostIn(t, base, "alpha"), pace: quickly(2)}
	done := make(chan error)
	go func() { done <- m.run(t.Context()) }()
	require.Eventually(t, func() bool { return m.seated.Load() == 1 }, watchdog, poll)
	_, err := multilock.Break(t.Context(), other.locks, seatName(1), multilock.Want{Alive: true})
	require.NoError(t, err)
	require.ErrorAs(t, <-done, new(*joinError))
	a := attended{meeting: m}
	require.Equal(t, []string{"unusable join"}, a.severities())
	require.Contains(t, a.text(), "this host fell out of the trial: lock \"doctor-join-1\" is lost")
}

// A lock that is lost in silence was lost by the host itself; one that is taken away
// was not safe.
func TestJoinJudgesALostTurn(t *testing.T) {
	t.Parallel()
	m := &meeting{pace: quickly(2)}
	require.ErrorAs(t, m.lostTurn(&multilock.LostError{Silence: time.Hour}), new(*joinError))
	require.ErrorAs(t, m.lostTurn(&multilock.LostError{Silence: time.Hour, Err: os.ErrNotExist}), new(*joinError))
	require.Empty(t, m.harm)
	require.NoError(t, m.lostTurn(&multilock.LostError{Silence: time.Second, Err: os.ErrNotExist}))
	require.Len(t, m.harm, 1)
}

// What cannot be understood is told, and kept away from.
func TestJoinBesideForeignBytes(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	hosts := hostsIn(t, base, "alpha", "beta")
	foreign := filepath.Join(base, ".locks", seatName(1))
	require.NoError(t, os.MkdirAll(foreign, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(foreign, seatName(1)+".locked"), []byte("\x00torn"), 0o600))
	for _, a := range gather(t.Context(), quickly(2), hosts...) {
		require.NoError(t, a.err)
		require.Equal(t, []string{"fine host", "warning join", "fine join"}, a.severities(), a.text())
		require.Contains(t, a.text(), "somebody who cannot be told took part: doctor-join-1: ")
	}
	require.Equal(t, []string{seatName(1)}, namesIn(t, filepath.Join(base, ".locks")))
}

// Somebody else who has the lock that all want is named.
func TestJoinWhereTheLockIsSomebodyElses(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	other := hostIn(t, base, "omega")
	deadIn(t, other, time.Hour, joinName)
	pace := quickly(2)
	pace.limit = 300 * time.Millisecond
	all := gather(t.Context(), pace, hostsIn(t, base, "alpha", "beta")...)
	requireUnsafe(t, all, "the lock doctor-join is held by omega pid 7: ") // the other one may see that one leave first
	require.Equal(t, []string{joinName}, namesIn(t, filepath.Join(base, ".locks")))
}

// Meetings in one place may mix, and hosts may come at any time: nobody is accused
// of anything, and everybody comes to an end.
func TestJoinOfMany(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	var hosts []*openedSource
	for n := range 6 {
		hosts = append(hosts, hostIn(t, base, fmt.Sprintf("host%d", n)))
	}
	var early, late []attended
	var group sync.WaitGroup
	group.Go(func() { early = gather(t.Context(), quickly(2), hosts[:4]...) })
	group.Go(func() {
		assert.Eventually(t, func() bool {
			names, err := hosts[5].locks.Names(t.Context())
			return err == nil && slices.Contains(names, joinName)
		}, watchdog, poll)
		pace := quickly(2)
		pace.wait = time.Second // the others may be gone before they look
		late = gather(t.Context(), pace, hosts[4:]...)
	})
	group.Wait()
	for _, a := range append(early, late...) {
		require.Empty(t, a.harm)
		require.NotContains(t, a.text(), "NOT SAFE")
		require.NotContains(t, a.text(), "never kept")
		require.NotContains(t, a.text(), "went away")
	}
	requireNothingLeft(t, base)
}

func TestAccounts(t *testing.T) {
	t.Parallel()
	behind := -3 * time.Millisecond
	for _, a := range []account{{}, {Harm: true}, {Turns: 3, Fences: []uint64{4, 5, 1 << 60}}, {Turns: 1, Clock: &behind, Fences: []uint64{7}}} {
		require.Equal(t, &a, parseAccount(a.String()))
		for n := range len(a.String()) {
			require.True(t, parseAccount(a.String()[:n]).Garbled, "cut off after %d bytes", n)
		}
	}
	for _, text := range []string{"make", joinCommand + ": turns=x end", joinCommand + ": fence=-1 end", joinCommand + ": clock=1 end", joinCommand + ": later=1 end"} {
		require.True(t, parseAccount(text).Garbled, text)
	}
}

func TestSeats(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"doctor-join", "doctor-join-", "doctor-join-0", "doctor-join-01", "doctor-join--1", "doctor-join-1-", "doctor-join-1-x", "doctor-join-1-told-x", "doctor-join-1001", "doctor-join-1 "} {
		_, _, ok := cutSeat(name)
		require.False(t, ok, name)
	}
	for _, name := range []string{seatName(1), seatName(maxSeats), markName(12, toldMark), markName(3, readMark)} {
		seat, mark, ok := cutSeat(name)
		require.True(t, ok, name)
		if again := seatName(seat); mark != "" {
			require.Equal(t, name, markName(seat, mark))
		} else {
			require.Equal(t, name, again)
		}
	}
}

// A mark counts if it is that of the seat's present holder.
func TestJoinDistrustsMarksOfOthers(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	alpha, omega := hostIn(t, base, "alpha"), hostIn(t, base, "omega")
	name := markName(1, toldMark)
	deadIn(t, omega, time.Hour, name)
	m := &meeting{src: hostIn(t, base, "beta"), pace: quickly(2)}
	for _, holder := range []*openedSource{alpha, omega} {
		p := &peer{seat: 1, holder: multilock.Holder{Identity: holder.self}}
		told, err := m.hasMark(t.Context(), p, []string{name}, toldMark)
		require.NoError(t, err)
		require.Equal(t, holder == omega, told != nil)
		told, err = m.hasMark(t.Context(), p, []string{seatName(1)}, toldMark)
		require.NoError(t, err)
		require.Nil(t, told)
	}
}
