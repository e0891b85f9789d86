package scenes_test

import (
	"context"
	"path"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/explore"
	"github.com/multilock/go/internal/explore/locks"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

const (
	exploreTTL  = locks.TTL
	exploreBeat = locks.Beat
)

// contest is a scenario in which actors compete for one lock, and break it if it is dead.
func contest(contenders ...func(*explore.Actor)) *explore.Scenario {
	sc := locks.Scenario(contenders...)
	sc.Owns, sc.AtEnd = ownsTheLock, nothingIsLeft
	return sc
}

// ownsTheLock checks that the actor that relies on the lock has it on the server.
func ownsTheLock(w *explore.World, a *explore.Actor) string {
	if found := locks.Holder(w, "lock"); found != a.Has {
		return a.Name + " believes to have the lock, and the server has that of " + found
	}
	return ""
}

// nothingIsLeft checks that the lock is free in the end, unless an actor crashed, or the repair of a fault
// met another fault; and that all actors had it in time.
func nothingIsLeft(w *explore.World) {
	crashed := slices.Contains(w.Met(), explore.Crash)
	if !crashed && len(w.Met()) < 2 && locks.Left(w) {
		w.Violate("I3: something is left of a lock, and nobody crashed")
	}
	allInTime(w)
}

// allInTime checks that all actors have ended in time.
func allInTime(w *explore.World) {
	if late := w.Elapsed() - allowed(w); late > 0 {
		w.Violate("I3: it took %s too long", late)
	}
}

// The excuses after faults: see excuses.
const (
	silence  = 1 << iota // an actor sent no heartbeat: a lock may be broken
	unheard              // a request may have been executed although it failed for its sender
	crashed              // a lock may be left
	several              // anything may be left
	mendable             // a single fault that costs only a moment
)

// excuses returns the past for the checks of a contest: nothingIsLeft, inTime, and those of package locks.
func excuses(w *explore.World) explore.Past {
	past := explore.Past{Late: w.Elapsed() - allowed(w)}
	for _, fate := range w.Met() {
		switch fate {
		case explore.Crash:
			past.Excused |= silence | crashed
			if len(w.Actors()) == 2 && len(w.Met()) == 1 {
				past.Asked = uint64(w.SinceCrash()) //nolint:gosec // a hash
			}
		case explore.Lost, explore.Failed, explore.Twice:
			past.Excused |= unheard | mendable
		case explore.Late, explore.Again, explore.Refused:
			past.Excused |= unheard
		default:
			past.Excused |= silence
		}
	}
	if len(w.Met()) > 1 {
		past.Excused = past.Excused&unheard | silence | crashed | several
	}
	return past
}

// ages reports for which objects times are read: for a lock's directory, which is created in staging, for its
// heartbeats. Times of the base's directories are only compared with those right before a touch, for the
// server's clock; and the lock file's are for people.
func ages(made string) bool { return path.Dir(made) == "/.multilock/staging" }

// alike limits the state of a contest to what still matters. Of its first two actors, which are equal, only
// one begins.
func alike(sc *explore.Scenario) {
	sc.Excuses, sc.Ages, sc.Alike, sc.Remembers = excuses, ages, 2, remembers
}

// remembers inspects the lock, which is free.
func remembers(a *explore.Actor) {
	o, err := observer(a)
	if err == nil {
		_, err = o.Look(context.Background())
	}
	if err != nil {
		a.World().Violate("remember: %v", err)
	}
}

// observer returns an observer on the actor's host.
func observer(a *explore.Actor) (source.Observer, error) {
	src, err := locks.Source(a)
	if err != nil {
		return nil, err
	}
	return src.Observe(context.Background(), "lock", source.StalePolicy{})
}

// allowed returns the maximum duration of a contest: the holds of the contenders, and for each fault the TTL
// and the window after which a lock is free again, and the pause. A single lost reply costs only a
// moment.
func allowed(w *explore.World) time.Duration {
	const turn, mended = 14 * exploreBeat, exploreTTL + 3*exploreBeat
	allowed := time.Duration(len(w.Actors())) * turn
	for _, fate := range w.Met() {
		switch {
		case fate == explore.Crash, len(w.Met()) > 1:
			allowed += mended + w.Pause()
		case fate == explore.Lost, fate == explore.Failed, fate == explore.Twice:
			allowed += turn
		default:
			allowed += mended + w.Pause()
		}
	}
	return allowed
}

// contender returns a contender on the actor's host. Processes of one host always count as alive.
func contender(a *explore.Actor) (source.Contender, error) {
	src, err := locks.Source(a)
	if err != nil {
		return nil, err
	}
	return contenderOf(src)
}

func contenderOf(src *fslock.Source) (source.Contender, error) {
	return src.Contend(context.Background(), "lock", locks.Claim, source.StalePolicy{})
}

// contends acquires the lock, and holds it for a moment and for longer than a TTL.
func contends(a *explore.Actor) { contendsFor(a, 1) }
func stays(a *explore.Actor)    { contendsFor(a, 12) }

func contendsFor(a *explore.Actor, signs int) {
	contendsDoing(a, func(lease source.Lease) { givesSigns(a, lease, signs) })
}

// contendsDoing acquires the lock, calls during, and releases it.
func contendsDoing(a *explore.Actor, during func(source.Lease)) {
	c, err := contender(a)
	for err != nil {
		a.Note("contend: %v", err)
		a.Sleep(exploreBeat)
		c, err = contender(a)
	}
	contendsWith(a, c, 0, during)
}

// contendsWith rests after each inspection of the holder, if rest is positive.
func contendsWith(a *explore.Actor, c source.Contender, rest time.Duration, during func(source.Lease)) {
	locks.Owner(ownsTheLock).Contends(a, c, rest, func(lease source.Lease) { inTime(a); during(lease) })
}

func givesSigns(a *explore.Actor, lease source.Lease, signs int) {
	locks.Owner(ownsTheLock).GivesSigns(a, lease, signs)
}

// inTime checks that the lock of a crashed actor was free after a TTL and a window. Remains in its
// directory do not delay anything.
func inTime(a *explore.Actor) {
	w := a.World()
	if len(w.Actors()) == 2 && slices.Equal(w.Met(), []explore.Fate{explore.Crash}) && w.SinceCrash() > exploreTTL+3*exploreBeat {
		w.Violate("I3: it took %s until the lock of who crashed was free", w.SinceCrash())
	}
}

func proven(t *testing.T, r explore.Report) {
	t.Helper()
	t.Log(r)
	if r.Violation != "" {
		require.Fail(t, r.Violation, "replay with %s\n%s", r.Choices, r.Trace)
	}
}

// Each actor may break the other's lock: two contenders are two breakers.
// Rule: I1, I2, I3, I4, rename
func TestExploreEveryOrder(t *testing.T) {
	t.Parallel()
	sc := contest(contends, contends)
	sc.Preemptions = 5
	proven(t, sc.Exhaust(t, 10*time.Minute))
}

// Rule: I1, I2, I3, I4, silence
func TestExploreAFault(t *testing.T) {
	t.Parallel()
	sc := contest(contends, contends)
	sc.Preemptions, sc.Faults = 1, 1
	if *long {
		sc.Preemptions, sc.Faults = 2, 2
	}
	sc.Kinds = append(sc.Kinds, explore.Jump)
	proven(t, sc.Exhaust(t, 20*time.Minute))
}

// A staged lock is private, but a fault in it may matter to other actors.
// Rule: I1, I3, stage
func TestExploreStaging(t *testing.T) {
	t.Parallel()
	sc := contest(contends, contends)
	sc.Kinds = append(sc.Kinds, explore.Refused)
	sc.Private, sc.Preemptions, sc.Faults = nil, 0, 1
	proven(t, sc.Exhaust(t, 10*time.Minute))
	sc.Kinds, sc.Faults, sc.AtEnd = []explore.Fate{explore.Pause}, 2, nil
	sc.Actors[1].Run = func(a *explore.Actor) { // begins when the paused actor continues
		a.Sleep(sc.Pause)
		contends(a)
	}
	proven(t, sc.Exhaust(t, 10*time.Minute))
}

// Rule: I1, I2, I3, I4, break
func TestExploreAtRandom(t *testing.T) {
	t.Parallel()
	sc := contest(contends, contends, contends)
	sc.Preemptions, sc.Faults = 5, 2
	for _, sc.Whole = range []bool{false, true} {
		proven(t, sample(t, sc, 2000))
	}
}

// Far beyond the exhaustive bounds: half of the schedules are variations of those with new observations.
// Rule: I1, I2, I3, I4
func TestExploreGuided(t *testing.T) {
	t.Parallel()
	sc := contest(contends, contends, looksOn)
	sc.Preemptions, sc.Faults = 8, 4
	proven(t, sc.Guide(t, 1, drawn(2000)))
}

// Two actors wait, one for long: its staged lock is old when it gets the lock, and it is suspended then.
// Rule: I1, I2, arrival
func TestExploreWaiters(t *testing.T) {
	t.Parallel()
	sc := contest(contends, contends, contends)
	alike(sc)
	sc.Kinds, sc.Preemptions, sc.Faults, sc.InTurn = []explore.Fate{explore.Nap, explore.Doze}, 1, 1, true
	proven(t, sc.Exhaust(t, 10*time.Minute))
}

// A watcher notices each heartbeat, whatever it misses, and whichever process naps.
// Rule: I1, I2, heartbeat, silence, release
func TestExploreStays(t *testing.T) {
	t.Parallel()
	sc := contest(stays, contends)
	sc.Preemptions, sc.Faults = 5, 2
	proven(t, sample(t, sc, 1000))
}

// sample draws schedules.
func sample(t *testing.T, sc *explore.Scenario, schedules int) explore.Report {
	return sc.Sample(t, 1, drawn(schedules))
}

// drawn returns a number of schedules, a hundred times as many in the long form.
func drawn(schedules int) int {
	if *long {
		schedules *= 100
	}
	return schedules
}
