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

// contest is a scenario in which some want one lock, and break it if it is dead.
func contest(contenders ...func(*explore.Actor)) *explore.Scenario {
	sc := locks.Scenario(contenders...)
	sc.Owns, sc.AtEnd = ownsTheLock, nothingIsLeft
	return sc
}

// ownsTheLock says that the lock on the server is that of who believes to have it.
func ownsTheLock(w *explore.World, a *explore.Actor) string {
	if found := locks.Holder(w, "lock"); found != a.Has {
		return a.Name + " believes to have the lock, and the server has that of " + found
	}
	return ""
}

// nothingIsLeft says that the lock is free in the end, unless somebody crashed, or what was
// to mend a fault met another; and that everybody had it in time.
func nothingIsLeft(w *explore.World) {
	crashed := slices.Contains(w.Met(), explore.Crash)
	if !crashed && len(w.Met()) < 2 && locks.Left(w) {
		w.Violate("I3: something is left of a lock, and nobody crashed")
	}
	allInTime(w)
}

// allInTime says that all have ended as soon as they must.
func allInTime(w *explore.World) {
	if late := w.Elapsed() - allowed(w); late > 0 {
		w.Violate("I3: it took %s too long", late)
	}
}

// What is excused after faults: see excuses.
const (
	silence  = 1 << iota // somebody was silent: a lock may be broken
	unheard              // a request may have been carried out unknown to who made it
	crashed              // something may be left
	several              // and anything may
	mendable             // it costs no more than a moment, as long as it is alone
)

// excuses says what the checks of a contest make of the past: nothingIsLeft, inTime, and those of package locks.
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

// ages says of what anybody asks for the times: of a lock's directory, which is made in staging, for its signs of
// life. What the base's directories say is only compared with what it was right before a touch,
// for the server's clock; and the lock file's are for people.
func ages(made string) bool { return path.Dir(made) == "/.multilock/staging" }

// alike has states of a contest told apart by what still counts. Of its first two actors, which are the
// same, only one begins.
func alike(sc *explore.Scenario) {
	sc.Excuses, sc.Ages, sc.Alike, sc.Remembers = excuses, ages, 2, remembers
}

// remembers looks at the lock, which nobody has.
func remembers(a *explore.Actor) {
	o, err := observer(a)
	if err == nil {
		_, err = o.Look(context.Background())
	}
	if err != nil {
		a.World().Violate("remember: %v", err)
	}
}

// observer is who only looks, on the actor's host.
func observer(a *explore.Actor) (source.Observer, error) {
	src, err := locks.Source(a)
	if err != nil {
		return nil, err
	}
	return src.Observe(context.Background(), "lock", source.StalePolicy{})
}

// allowed is what all of a contest may take: the turns of those who contend, and for each
// fault the TTL and the window after which a lock is free again, and the pause of who stands
// still. A reply that is lost once costs no more than a moment.
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

// contender is one on the actor's host. Processes of one host live, whatever becomes of them.
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

// contends takes the lock and holds it for a moment, and stays for longer than a TTL.
func contends(a *explore.Actor) { contendsFor(a, 1) }
func stays(a *explore.Actor)    { contendsFor(a, 12) }

func contendsFor(a *explore.Actor, signs int) {
	contendsDoing(a, func(lease source.Lease) { givesSigns(a, lease, signs) })
}

// contendsDoing takes the lock, does something with it, and releases it.
func contendsDoing(a *explore.Actor, during func(source.Lease)) {
	c, err := contender(a)
	for err != nil {
		a.Note("contend: %v", err)
		a.Sleep(exploreBeat)
		c, err = contender(a)
	}
	contendsWith(a, c, 0, during)
}

// contendsWith rests after each look at the holder, if it is to.
func contendsWith(a *explore.Actor, c source.Contender, rest time.Duration, during func(source.Lease)) {
	locks.Owner(ownsTheLock).Contends(a, c, rest, func(lease source.Lease) { inTime(a); during(lease) })
}

func givesSigns(a *explore.Actor, lease source.Lease, signs int) {
	locks.Owner(ownsTheLock).GivesSigns(a, lease, signs)
}

// inTime says that the lock of who crashed was free after a TTL and a window. What was left in
// its directory is nobody's to wait for.
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
	proven(t, sc.Exhaust(t, time.Minute))
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

// A staged lock is private, but a fault in it may matter to others.
// Rule: I1, I3, stage
func TestExploreStaging(t *testing.T) {
	t.Parallel()
	sc := contest(contends, contends)
	sc.Kinds = append(sc.Kinds, explore.Refused)
	sc.Private, sc.Preemptions, sc.Faults = nil, 0, 1
	proven(t, sc.Exhaust(t, 10*time.Minute))
	sc.Kinds, sc.Faults, sc.AtEnd = []explore.Fate{explore.Pause}, 2, nil
	sc.Actors[1].Run = func(a *explore.Actor) { // comes when who stood still goes on
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

// Far beyond what is played whole: half of the schedules are made of those that have shown something new.
// Rule: I1, I2, I3, I4
func TestExploreGuided(t *testing.T) {
	t.Parallel()
	sc := contest(contends, contends, looksOn)
	sc.Preemptions, sc.Faults = 8, 4
	proven(t, sc.Guide(t, 1, drawn(2000)))
}

// Two wait, one for long: its staged lock is old when it gets the lock, and it is suspended then.
// Rule: I1, I2, arrival
func TestExploreWaiters(t *testing.T) {
	t.Parallel()
	sc := contest(contends, contends, contends)
	alike(sc)
	sc.Kinds, sc.Preemptions, sc.Faults, sc.InTurn = []explore.Fate{explore.Nap, explore.Doze}, 1, 1, true
	proven(t, sc.Exhaust(t, 10*time.Minute))
}

// A watcher sees each heartbeat, whatever it misses, and whichever process naps.
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

// drawn are so many schedules; in the long form a hundred times as many.
func drawn(schedules int) int {
	if *long {
		schedules *= 100
	}
	return schedules
}
