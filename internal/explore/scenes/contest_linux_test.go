package scenes_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/explore"
	"github.com/multilock/go/internal/simnfs"
	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

const (
	exploreTTL  = 40 * time.Second
	exploreBeat = 4 * time.Second
)

// contest is a scenario in which some want one lock, and break it if it is dead.
func contest(contenders ...func(*explore.Actor)) *explore.Scenario {
	sc := &explore.Scenario{
		Mount:       simnfs.Options{V4: true, MinAge: 30 * time.Second, MaxAge: time.Minute},
		Preemptions: 1, Remember: true, Kinds: []explore.Fate{explore.Crash, explore.Pause, explore.Slow, explore.Nap, explore.Doze, explore.Lost, explore.Failed, explore.Twice, explore.Late},
		Pause: 3 * exploreTTL, Nap: exploreTTL - exploreBeat, Grid: exploreBeat / 2, Most: 5000,
		Private: func(r simnfs.Request) bool {
			return strings.HasPrefix(r.Path, "/.multilock") && !strings.HasPrefix(r.Path, "/.multilock/groups/.locks/") && r.Kind != "rename"
		},
		Prepare: hadItBefore, Owns: ownsTheLock, AtEnd: nothingIsLeft,
	}
	for i, run := range contenders {
		sc.Actors = append(sc.Actors, explore.Program{Name: string(rune('A' + i)), Run: run})
	}
	return sc
}

// ownsTheLock says that the lock on the server is that of who believes to have it.
func ownsTheLock(w *explore.World, a *explore.Actor) string {
	if found := w.Server.Content(".locks/lock/lock.locked"); tokenIn(found) != a.Has {
		return a.Name + " believes to have the lock, and the server has " + strings.TrimSpace(string(found))
	}
	return ""
}

// nothingIsLeft says that the lock is free in the end, unless somebody crashed, or what was
// to mend a fault met another; and that everybody had it in time.
func nothingIsLeft(w *explore.World) {
	crashed := slices.Contains(w.Met(), explore.Crash)
	if !crashed && len(w.Met()) < 2 && leftOfALock(w) {
		w.Violate("I3: something is left of a lock, and nobody crashed")
	}
	if late := w.Elapsed() - allowed(w); late > 0 {
		w.Violate("I3: it took %s too long", late)
	}
}

// leftOfALock says that there is more than an empty directory.
func leftOfALock(w *explore.World) bool {
	return slices.ContainsFunc(w.Server.Names(), func(path string) bool { return strings.HasPrefix(path, ".locks/lock/") })
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

var exploreClaim = source.Claim{TTL: exploreTTL, Heartbeat: exploreBeat}

// whoWeAre costs more than a schedule.
var whoWeAre = sync.OnceValues(process.Self)

// sourceOf is the locks as the actor's host has them.
func sourceOf(a *explore.Actor) (*fslock.Source, error) {
	self, err := whoWeAre()
	if err != nil {
		return nil, err
	}
	return fslock.Open(fslock.Options{Base: "/", FS: a, Self: onHost(self, a.Host)})
}

func onHost(self process.Identity, name string) process.Identity {
	host := "host" + name
	self.Host, self.Machine, self.Boot = host, "machine of "+host, "boot of "+host
	return self
}

// contender is one on the actor's host. Processes of one host live, whatever becomes of them.
func contender(a *explore.Actor) (source.Contender, error) {
	src, err := sourceOf(a)
	if err != nil {
		return nil, err
	}
	return contenderOf(src)
}

func contenderOf(src *fslock.Source) (source.Contender, error) {
	return src.Contend(context.Background(), "lock", exploreClaim, source.Patience{})
}

// hadItBefore has the host's file system tested, and its client remember the names.
func hadItBefore(a *explore.Actor) {
	c, err := contender(a)
	if err != nil {
		a.World().Violate("prepare: %v", err)
		return
	}
	lease, err := c.Try(context.Background())
	if err == nil {
		err = lease.Release(context.Background())
	}
	if err != nil {
		a.World().Violate("prepare: %v", err)
	}
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
	for {
		lease, err := c.Try(context.Background())
		switch {
		case err == nil:
			a.Note("ACQUIRED")
			inTime(a)
			holds(a, lease, during)
			return
		case errors.Is(err, source.ErrHeld):
			if pause := breaks(a, c); pause+rest > 0 {
				a.Rest(pause+rest, "contends", c)
			}
		default:
			a.Note("try: %v", err)
			if a.Unsaid == "rename" && len(a.World().Met()) == 1 && a.World().Server.Tick == 0 {
				a.World().Violate("I4: %s is not told that it has the lock, for one reply was lost: %v", a.Name, err)
			}
			a.Rest(exploreBeat/2, "contends", c)
		}
	}
}

// inTime says that the lock of who crashed was free after a TTL and a window. What was left in
// its directory is nobody's to wait for.
func inTime(a *explore.Actor) {
	w := a.World()
	if len(w.Actors()) == 2 && slices.Equal(w.Met(), []explore.Fate{explore.Crash}) && w.SinceCrash() > exploreTTL+3*exploreBeat {
		w.Violate("I3: it took %s until the lock of who crashed was free", w.SinceCrash())
	}
}

// someoneWasSilent says that a lock may have to be broken: one reply that is lost is no reason.
func someoneWasSilent(w *explore.World) bool {
	brief := []explore.Fate{explore.Lost, explore.Failed, explore.Twice, explore.Late}
	return len(w.Met()) > 1 || len(w.Met()) == 1 && !slices.Contains(brief, w.Met()[0])
}

// breaks looks at the holder, breaks a lock that is dead, and says how long to rest then.
func breaks(a *explore.Actor, c source.Contender) time.Duration {
	seen, err := c.Look(context.Background())
	switch {
	case err != nil:
		a.Note("look: %v", err)
		return exploreBeat / 2
	case seen.State == source.StateDead:
		a.Note("BREAKS: %s", seen.Why)
		if leftOfALock(a.World()) && !someoneWasSilent(a.World()) {
			a.World().Violate("I3: %s breaks a lock, and nobody was silent: %s", a.Name, seen.Why)
		}
		if len(a.World().Actors()) == 1 {
			a.World().Violate("I3: %s takes itself for a holder that is dead: %s", a.Name, seen.Why)
		}
		if err := c.Break(context.Background()); err != nil {
			a.Note("break: %v", err)
			return exploreBeat / 2
		}
		return 0
	case seen.State == source.StateFree:
		return time.Millisecond
	}
	return min(max(seen.Next, time.Second), exploreBeat)
}

// believes until its tenure ends.
func believes(a *explore.Actor, since boottime.Instant) {
	a.Believe(time.Now().Add(exploreClaim.Tenure() - since.Elapsed()))
}

// givesSigns of life, as long as it believes: the core's keeper calls a lock lost after that.
func givesSigns(a *explore.Actor, lease source.Lease, signs int) {
	for range signs {
		a.Sleep(exploreBeat)
		start, forgot := boottime.Now(), slices.Contains(a.World().Met(), explore.Forgets)
		if !a.Believes() {
			return
		}
		err := lease.Renew(context.Background())
		a.Note("renewed: %v", err)
		if wrong := ownsTheLock(a.World(), a); forgot && err == nil && wrong != "" {
			a.World().Violate("I1: a sign of life is confirmed, and %s", wrong)
		}
		if errors.Is(err, source.ErrLost) {
			return
		}
		if err == nil && a.Believes() {
			believes(a, start)
		}
	}
}

// holds does something with the lock, gives signs of life, and releases it.
func holds(a *explore.Actor, lease source.Lease, during func(source.Lease)) {
	a.Has = lease.Record().Token
	since := time.Now()
	believes(a, lease.Since())
	during(lease)
	a.Believe(time.Time{})
	wrong := ownsTheLock(a.World(), a)
	if slices.Contains(a.World().Met(), explore.Forgets) {
		wrong = "" // it may be where it was staged again
	}
	for range 5 {
		err := lease.Release(context.Background())
		a.Note("released: %v", err)
		released(a, wrong, time.Since(since), err)
		if err == nil || errors.Is(err, source.ErrLost) || errors.Is(err, source.ErrReleased) || errors.Is(err, source.ErrUnsure) {
			return
		}
		a.Sleep(exploreBeat / 2)
	}
}

// released compares what a release says with what was wrong before it. Only of a lock that was held
// for a moment it need not know.
func released(a *explore.Actor, wrong string, held time.Duration, err error) {
	unheard := func(f explore.Fate) bool { return f >= explore.Lost }
	switch {
	case wrong == "":
	case err == nil:
		a.World().Violate("I4: a release says that the lock was held, and %s", wrong)
	case errors.Is(err, source.ErrUnsure) && held >= exploreBeat && !slices.ContainsFunc(a.World().Met(), unheard):
		a.World().Violate("I4: a release cannot tell, and could: %s", wrong)
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
func TestExploreEveryOrder(t *testing.T) {
	t.Parallel()
	sc := contest(contends, contends)
	sc.Preemptions = 5
	proven(t, sc.Exhaust(t, time.Minute))
}

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

// What is staged is nobody else's business, but a fault in it may be.
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

func TestExploreAtRandom(t *testing.T) {
	t.Parallel()
	sc := contest(contends, contends, contends)
	sc.Preemptions, sc.Faults = 5, 2
	for _, sc.Whole = range []bool{false, true} {
		proven(t, sample(t, sc, 2000))
	}
}

// Who watches sees each sign of life, whatever he misses, and whoever naps.
func TestExploreStays(t *testing.T) {
	t.Parallel()
	sc := contest(stays, contends)
	sc.Preemptions, sc.Faults = 5, 2
	proven(t, sample(t, sc, 1000))
}

// sample draws schedules; in the long form a hundred times as many.
func sample(t *testing.T, sc *explore.Scenario, schedules int) explore.Report {
	if *long {
		schedules *= 100
	}
	return sc.Sample(t, 1, schedules)
}
