//go:build unix

package jointest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// Only a failing test takes as long as the watchdog.
const (
	watchdog = 2 * time.Minute
	poll     = 5 * time.Millisecond
)

const (
	joinName    = "doctor-join"
	joinCommand = "multilock doctor --join"
)

// named has the names of the locks in these tests.
var named = Spec{Name: joinName}

// openedSource is a source with the identity of the host that opened it.
type openedSource struct {
	locks multilock.Source
	self  process.Identity
}

// hostIn returns a host that uses the locks in a directory. Other hosts see it as a separate process.
func hostIn(t *testing.T, base, name string) *openedSource {
	t.Helper()
	return openAs(t, base, process.Identity{Host: name, Machine: "machine-of-" + name, Boot: "boot-of-" + name, Namespace: "pid:[1]", PID: 7, Start: 1})
}

func openAs(t *testing.T, base string, self process.Identity) *openedSource {
	t.Helper()
	locks, err := fslock.Open(fslock.Options{Base: base, Self: self})
	require.NoError(t, err)
	t.Cleanup(func() { _ = locks.Close() })
	return &openedSource{locks, self}
}

// setting has the conditions of a test.
type setting struct {
	hosts int
	wait  time.Duration
	pace
}

// quickly has a pace without long waits.
func quickly(hosts int) setting {
	return setting{hosts, watchdog, pace{limit: watchdog, pause: 2 * time.Millisecond, hold: 20 * time.Millisecond, turns: 3, ttl: 2 * time.Second}}
}

// on returns a host for a test; here is the last number of participants that it reported.
func (s setting) on(src *openedSource) (h *host, here *atomic.Int64) {
	here = &atomic.Int64{}
	return newHost(Spec{
		Locks: src.locks, Name: joinName, User: "ada", Command: joinCommand,
		Hosts: s.hosts, Wait: s.wait, Here: func(hosts int) { here.Store(int64(hosts)) },
	}, s.pace), here
}

// attended is a host after a test, and the test's error.
type attended struct {
	*host
	err error
}

func (a attended) severities() []string {
	var all []string
	for _, f := range a.report().Findings {
		all = append(all, string(f.Severity)+" "+f.Subject)
	}
	return all
}

func (a attended) text() string { return fmt.Sprint(a.report().Findings) }

// gather runs a test with these hosts, and returns when all have left.
func gather(ctx context.Context, s setting, hosts ...*openedSource) []attended {
	all := make([]attended, len(hosts))
	var group sync.WaitGroup
	for i, src := range hosts {
		group.Go(func() {
			h, _ := s.on(src)
			all[i] = attended{h, h.run(ctx)}
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

func namesIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// requireNothingLeft allows the counter of the fencing tokens, and the history of broken locks.
func requireNothingLeft(t *testing.T, base string) {
	t.Helper()
	require.Empty(t, namesIn(t, filepath.Join(base, ".locks")))
	require.Empty(t, namesIn(t, filepath.Join(base, ".multilock", "staging")))
	for _, dir := range namesIn(t, filepath.Join(base, ".multilock", "groups", ".locks")) {
		require.Contains(t, []string{"fence", "history"}, dir)
	}
	require.Equal(t, []string{joinName}, namesIn(t, filepath.Join(base, ".multilock", "groups", ".locks", "fence")))
}

// Hosts that use the same locks find out that the locks exclude each other.
func TestJoin(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	numbers := map[uint64]bool{}
	for _, a := range gather(t.Context(), quickly(3), hostsIn(t, base, "alpha", "beta", "gamma")...) {
		require.NoError(t, a.err)
		require.Equal(t, []string{"ok host", "ok host", "ok join"}, a.severities(), a.text())
		v := a.report()
		require.GreaterOrEqual(t, v.Turns, 3)
		require.Len(t, v.Fences, v.Turns)
		for _, number := range v.Fences {
			require.False(t, numbers[number], "number %d twice", number)
			numbers[number] = true
		}
		for _, h := range v.Hosts {
			require.Equal(t, EndComplete, h.End)
			require.Positive(t, h.Refused)
			require.GreaterOrEqual(t, h.Turns, 3)
			require.False(t, h.SameHost)
			require.NotNil(t, h.Clock)
			require.NotEqual(t, a.self().Host, h.Host)
		}
	}
	requireNothingLeft(t, base)
}

// A source without declared guarantees, fencing tokens and clock is tested, too.
func TestJoinWhereThereIsNothingButLocks(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	hosts := hostsIn(t, base, "alpha", "beta")
	for _, src := range hosts {
		b := numbering(func() uint64 { return 0 })
		b.Source = src.locks
		src.locks = b
	}
	for _, a := range gather(t.Context(), quickly(2), hosts...) {
		require.NoError(t, a.err)
		require.Equal(t, []string{"ok host", "ok join"}, a.severities(), a.text())
		require.Empty(t, a.report().Fences)
		require.Nil(t, a.report().Hosts[0].Clock)
	}
	require.Empty(t, namesIn(t, filepath.Join(base, ".locks")))
}

// Two hosts that mount different filesystems at the same path do not find each other.
func TestJoinInDifferentPlaces(t *testing.T) {
	t.Parallel()
	pace := quickly(2)
	pace.wait = 50 * time.Millisecond
	one, other := t.TempDir(), t.TempDir()
	for _, a := range gather(t.Context(), pace, hostIn(t, one, "alpha"), hostIn(t, other, "beta")) {
		require.NoError(t, a.err)
		require.True(t, a.report().Open)
		require.Equal(t, []string{"critical join"}, a.severities())
		require.Contains(t, a.text(), "no other host joined within 50ms")
	}
	require.Empty(t, namesIn(t, filepath.Join(one, ".locks")))
	require.Empty(t, namesIn(t, filepath.Join(other, ".locks")))
}

// If one of three hosts is missing, the other two report which hosts joined.
func TestJoinWithoutOneOfThem(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	pace := quickly(3)
	pace.wait = 300 * time.Millisecond
	for _, a := range gather(t.Context(), pace, hostsIn(t, base, "alpha", "beta")...) {
		require.Contains(t, []string{"[ok host critical join]", "[warning host critical join]"}, fmt.Sprint(a.severities()), a.text())
		require.Regexp(t, `only 1 of 2 other hosts joined within 300ms: (alpha|beta) pid 7|no other host joined within 300ms`, a.text())
	}
}

// Participants on one host prove nothing about other hosts, and clones are reported.
func TestJoinOfRelatives(t *testing.T) {
	t.Parallel()
	for what, boot := range map[string]string{"it runs on this host": "boot-of-alpha", "one may be a clone": "another boot"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			base := t.TempDir()
			alpha := hostIn(t, base, "alpha")
			twin := alpha.self
			twin.PID, twin.Boot, twin.Namespace = 8, boot, "pid:[2]"
			for _, a := range gather(t.Context(), quickly(2), alpha, openAs(t, base, twin)) {
				require.NoError(t, a.err)
				require.Equal(t, []string{"warning host", "ok join"}, a.severities(), a.text())
				require.Contains(t, a.text(), what)
			}
		})
	}
}

// deadIn leaves locks behind, as a killed participant does.
func deadIn(t *testing.T, src *openedSource, ttl time.Duration, names ...string) {
	t.Helper()
	for _, name := range names {
		lock, err := multilock.TryAcquire(t.Context(), src.locks, name, multilock.Options{TTL: ttl, Command: joinCommand})
		require.NoError(t, err)
		require.NoError(t, lock.Detach())
	}
}

// A participant that dies in its turn is reported. The others remove its locks, and finish the test.
func TestJoinSurvivesAParticipant(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	pace := quickly(3)
	deadIn(t, hostIn(t, base, "gamma"), pace.ttl, named.lockName(1, presence), joinName)
	for _, a := range gather(t.Context(), pace, hostsIn(t, base, "alpha", "beta")...) {
		require.NoError(t, a.err)
		require.ElementsMatch(t, []string{"warning host", "ok host", "ok join"}, a.severities(), a.text())
		require.Regexp(t, `gamma pid 7: it disappeared during the test: no heartbeat for`, a.text())
	}
	requireNothingLeft(t, base)
}

// The remains of an earlier test, all of whose participants died, do not disturb a later test, which removes
// them. Other locks remain.
func TestJoinAfterATestThatDied(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	pace := quickly(2)
	dead := hostIn(t, base, "omega")
	left := []string{named.lockName(1, presence), named.lockName(1, markTold), named.lockName(1, markRead), named.lockName(9, presence), joinName}
	deadIn(t, dead, 100*time.Millisecond, left...)
	require.NoError(t, os.Mkdir(filepath.Join(base, ".locks", named.lockName(4, presence)), 0o700)) // as a release may leave it
	another := hostIn(t, base, "omicron")                                                           // only heartbeats are missing
	require.Eventually(t, func() bool {
		return !slices.ContainsFunc(left, func(name string) bool {
			seen, err := multilock.Inspect(t.Context(), another.locks, name, multilock.StalePolicy{})
			return err != nil || seen.State == multilock.StateHeld
		})
	}, watchdog, poll, "a participant whose TTL is not over takes part: one of the two could test with it, and leave before the other comes")
	others := []string{"doctor-join-", "doctor-join-1", "doctor-join-x#slot-1", "doctor-joiner", "nightly"}
	deadIn(t, dead, 100*time.Millisecond, others...)
	for _, a := range gather(t.Context(), pace, hostsIn(t, base, "alpha", "beta")...) {
		require.NoError(t, a.err)
		require.Equal(t, "ok join", a.severities()[len(a.severities())-1], a.text())
		require.NotContains(t, a.text(), string(source.SeverityUnusable))
	}
	require.Equal(t, others, namesIn(t, filepath.Join(base, ".locks")))
}

// Ctrl-C releases all locks immediately.
func TestJoinIsInterrupted(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	ctx, interrupt := context.WithCancelCause(t.Context())
	pace := quickly(2)
	pace.hold = watchdog / 2 // it is interrupted in the first turn
	beta := hostIn(t, base, "beta")
	deadIn(t, beta, time.Hour, named.lockName(2, presence)) // alpha waits for no other host
	done := make(chan attended)
	h, _ := pace.on(hostIn(t, base, "alpha"))
	go func() { done <- attended{h, h.run(ctx)} }()
	look := func() source.State {
		seen, err := multilock.Inspect(t.Context(), beta.locks, joinName, multilock.StalePolicy{})
		require.NoError(t, err)
		return seen.State
	}
	require.Eventually(t, func() bool { return look() == multilock.StateHeld }, watchdog, poll)
	interrupted := errors.New("interrupted")
	interrupt(interrupted)
	a := <-done
	require.ErrorIs(t, a.err, interrupted)
	require.Equal(t, []string{named.lockName(2, presence)}, namesIn(t, filepath.Join(base, ".locks")))
}

// A participant that leaves early is reported.
func TestJoinIsLeft(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	beta := hostIn(t, base, "beta")
	lock, err := multilock.TryAcquire(t.Context(), beta.locks, named.lockName(5, presence), multilock.Options{})
	require.NoError(t, err)
	pace := quickly(2)
	pace.turns = 1000 // it does not end by itself
	h, here := pace.on(hostIn(t, base, "alpha"))
	done := make(chan error)
	go func() { done <- h.run(t.Context()) }()
	require.Eventually(t, func() bool { return here.Load() == 2 }, watchdog, poll)
	require.NoError(t, lock.Release(t.Context()))
	require.NoError(t, <-done)
	a := attended{host: h}
	require.Equal(t, []string{"warning host", "critical join"}, a.severities())
	require.Contains(t, a.text(), "beta pid 7: it left before it had its turns")
}

// A host that lost its presence lock because it was suspended reports that and stops.
func TestJoinLosesItsPresenceLock(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	other := hostIn(t, base, "beta")
	h, here := quickly(2).on(hostIn(t, base, "alpha"))
	done := make(chan error)
	go func() { done <- h.run(t.Context()) }()
	require.Eventually(t, func() bool { return here.Load() == 1 }, watchdog, poll)
	_, err := multilock.Break(t.Context(), other.locks, named.lockName(h.number, presence), multilock.BreakOptions{Alive: true})
	require.NoError(t, err)
	require.NoError(t, <-done)
	a := attended{host: h}
	require.Equal(t, []string{"critical join"}, a.severities())
	require.Contains(t, a.text(), "this host dropped out of the test: lock \"doctor-join#slot-")
}

// A lock without heartbeats was lost by the host itself. If another host took the lock in spite of
// heartbeats, locks are not safe.
func TestJoinJudgesALostTurn(t *testing.T) {
	t.Parallel()
	h, _ := quickly(2).on(&openedSource{})
	for _, why := range []error{nil, os.ErrNotExist} {
		require.ErrorIs(t, h.lost(&multilock.LostError{Silence: time.Hour, Err: why}), errOpen)
	}
	require.ErrorIs(t, h.lost(&multilock.LostError{Silence: time.Second, Err: os.ErrNotExist}), errUnsafe)
}

// A lock in an unknown format is reported, and not changed.
func TestJoinBesideForeignBytes(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	hosts := hostsIn(t, base, "alpha", "beta")
	foreign := filepath.Join(base, ".locks", named.lockName(1, presence))
	require.NoError(t, os.MkdirAll(foreign, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(foreign, named.lockName(1, presence)+".locked"), []byte("\x00torn"), 0o600))
	for _, a := range gather(t.Context(), quickly(2), hosts...) {
		require.NoError(t, a.err)
		require.Equal(t, []string{"ok host", "warning join", "ok join"}, a.severities(), a.text())
		require.Contains(t, a.text(), "a participant cannot be identified: doctor-join#slot-1: ")
	}
	require.Equal(t, []string{named.lockName(1, presence)}, namesIn(t, filepath.Join(base, ".locks")))
}

// A holder of the contended lock that does not take part is named.
func TestJoinWhereTheLockIsHeldByAnother(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	other := hostIn(t, base, "omega")
	deadIn(t, other, time.Hour, joinName)
	pace := quickly(2)
	pace.limit = 3 * time.Second
	all := gather(t.Context(), pace, hostsIn(t, base, "alpha", "beta")...)
	requireUnsafe(t, all, "the lock doctor-join is held by omega pid 7: ") // the other host may first see it leave
	require.Equal(t, []string{joinName}, namesIn(t, filepath.Join(base, ".locks")))
}

// Concurrent tests may mix, and hosts may join at any time: none reports harm, and all tests end.
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
		pace.wait = time.Second // the others may have left before it observes them
		late = gather(t.Context(), pace, hosts[4:]...)
	})
	group.Wait()
	for _, a := range append(early, late...) {
		require.False(t, a.harmed)
		require.NotContains(t, a.text(), "NOT SAFE")
		require.NotContains(t, a.text(), "never excluded")
		require.NotContains(t, a.text(), "disappeared")
	}
	requireNothingLeft(t, base)
}

func TestAccounts(t *testing.T) {
	t.Parallel()
	behind := -.003
	for _, a := range []Account{{Fences: []uint64{}}, {Turns: 3, Fences: []uint64{4, 5, 1 << 60}}, {Turns: 1, Clock: &behind, Fences: []uint64{7}}} {
		for _, harm := range []bool{false, true} {
			text := a.text(joinCommand, harm)
			told, unsafe, ok := parseAccount(text, joinCommand)
			require.True(t, ok)
			require.Equal(t, a, told)
			require.Equal(t, harm, unsafe)
			for n := range len(text) {
				_, _, ok := parseAccount(text[:n], joinCommand)
				require.False(t, ok, "cut off after %d bytes", n)
			}
		}
	}
	for _, text := range []string{"make", `["x",1,null,[]]`, "[false,1,null,[-1]]", `[false,1,"1s",[]]`, "[false,1,null]", "[false,1,null,[],1]", "[false,1,null,[]]..."} {
		told, unsafe, ok := parseAccount(joinCommand+": "+text, joinCommand)
		require.False(t, ok, text)
		require.False(t, unsafe)
		require.Equal(t, Account{Fences: []uint64{}}, told)
	}
}

func TestLockNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"doctor-join", "doctor-join#slot-", "doctor-join#slot-0", "doctor-join#slot-01", "doctor-join#slot-1 ", "doctor-join-x#slot-1", "doctor#slot-1", "x-told#slot-1"} {
		_, _, ok := named.parseName(name)
		require.False(t, ok, name)
	}
	for _, name := range []string{named.lockName(1, presence), named.lockName(lockgroup.MaxSlots, presence), named.lockName(12, markTold), named.lockName(3, markRead)} {
		seat, mark, ok := named.parseName(name)
		require.True(t, ok, name)
		if again := named.lockName(seat, presence); mark != "" {
			require.Equal(t, name, named.lockName(seat, mark))
		} else {
			require.Equal(t, name, again)
		}
	}
}

// A mark counts only if the participant with its number holds it.
func TestJoinDistrustsMarksOfOthers(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	alpha, omega := hostIn(t, base, "alpha"), hostIn(t, base, "omega")
	name := named.lockName(1, markTold)
	deadIn(t, omega, time.Hour, name)
	h, _ := quickly(2).on(hostIn(t, base, "beta"))
	for _, holder := range []*openedSource{alpha, omega} {
		p := &peer{number: 1, record: source.Record{Claim: source.Claim{Holder: multilock.Holder{Identity: holder.self}}}}
		require.NoError(t, h.readMarks(t.Context(), p, []string{named.lockName(1, presence)}))
		require.Zero(t, p.marks, "it is not listed")
		require.NoError(t, h.readMarks(t.Context(), p, []string{name}))
		require.Equal(t, holder == omega, p.marks == 1)
	}
}
