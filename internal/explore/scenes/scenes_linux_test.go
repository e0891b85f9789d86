package scenes_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/multilock/go/internal/explore"
	"github.com/multilock/go/internal/simnfs"
	"github.com/multilock/go/multilock/source"
)

// facts are what a run of a scene notes as it happens, to be compared with what actors are
// told.
type facts struct {
	order     []string // tokens, as their locks came into place on the server
	drawn     map[string]uint64
	committed string          // the last of those that were told so
	refused   map[string]bool // were told that nothing is recorded
	forgets   map[string]bool // have begun to forget
}

func newFacts() any {
	return &facts{drawn: map[string]uint64{}, refused: map[string]bool{}, forgets: map[string]bool{}}
}

func factsOf(w *explore.World) *facts { return w.Facts.(*facts) }

// tokenIn is that of a record or a result.
func tokenIn(text []byte) string {
	var told struct{ Token string }
	if at := strings.IndexByte(string(text), '{'); at >= 0 {
		_ = json.Unmarshal(text[at:], &told) // what is torn has none
	}
	return told.Token
}

// notesOrder has the facts know whose lock is in place.
func notesOrder(w *explore.World) string {
	f := factsOf(w)
	if token := tokenIn(w.Server.Content(".locks/lock/lock.locked")); token != "" && !slices.Contains(f.order, token) {
		f.order = append(f.order, token)
	}
	return ""
}

// later says that a lock was in place after another.
func (f *facts) later(token, than string) bool {
	return slices.Index(f.order, token) > slices.Index(f.order, than)
}

// keepsResults says whether what was committed is there, until a later holder replaces or
// forgets it, and whether nothing is of which it was said that it is not.
func keepsResults(w *explore.World) string {
	notesOrder(w)
	f := factsOf(w)
	there := tokenIn(w.Server.Content(".multilock/groups/.locks/done/lock"))
	switch {
	case f.refused[there]:
		return "I7: a result is there of which it was said that it is not recorded"
	case f.committed == "" || there == f.committed:
		return ""
	case there != "" && f.later(there, f.committed):
		return ""
	case there == "" && slices.ContainsFunc(f.order, func(token string) bool { return f.forgets[token] && f.later(token, f.committed) }):
		return ""
	}
	return "I7: what was committed is not there any more"
}

// sceneOf is a contest in which each does something with the lock.
func sceneOf(work ...func(*explore.Actor, source.Lease)) *explore.Scenario {
	sc := contest()
	for i, during := range work {
		sc.Actors = append(sc.Actors, explore.Program{Name: string(rune('A' + i)), Run: func(a *explore.Actor) {
			reads(a)
			contendsDoing(a, func(lease source.Lease) { during(a, lease) })
		}})
	}
	sc.Facts, sc.Always = newFacts, notesOrder
	return sc
}

// reads looks for the result without the lock, as a run does first. It may be late.
func reads(a *explore.Actor) {
	src, err := sourceOf(a)
	if err != nil {
		a.Note("open: %v", err)
		return
	}
	found, err := src.Result(context.Background(), "lock")
	a.Note("read: %s %v", found.Token, err)
	if err == nil && factsOf(a.World()).refused[found.Token] {
		a.World().Violate("I7: %s reads a result that is not recorded", a.Name)
	}
}

// commits runs the job if it has not been run, and records that.
func commits(a *explore.Actor, lease source.Lease) {
	f, ledger := factsOf(a.World()), lease.(source.Committer)
	token, before := lease.Record().Token, f.committed
	found, err := ledger.Outcome(context.Background())
	a.Note("outcome: %s %v", found.Token, err)
	switch {
	case err == nil && f.refused[found.Token]:
		a.World().Violate("I7: %s is told of a result that is not recorded", a.Name)
	case errors.Is(err, source.ErrNoResult) && before != "" && len(f.forgets) == 0:
		a.World().Violate("I7: %s sees no result, and one was committed", a.Name)
	}
	if !errors.Is(err, source.ErrNoResult) || !a.Believes() {
		return
	}
	err = ledger.Commit(context.Background(), source.Result{Name: "lock", Token: token, Attempt: 1, Final: true})
	a.Note("commit: %v", err)
	switch {
	case err == nil && (f.committed == "" || f.later(token, f.committed)):
		f.committed = token
	case err != nil && !errors.Is(err, source.ErrUnsure):
		f.refused[token] = true
	}
}

// replaces records a result whatever there is, as who knows that there is none or that it is his
// to replace. Who crashed before cannot keep him from it.
func replaces(a *explore.Actor, lease source.Lease) {
	f, token := factsOf(a.World()), lease.Record().Token
	err := lease.(source.Committer).Commit(context.Background(), source.Result{Name: "lock", Token: token, Attempt: 1})
	a.Note("commit: %v", err)
	switch {
	case err == nil && (f.committed == "" || f.later(token, f.committed)):
		f.committed = token
	case err != nil && !errors.Is(err, source.ErrUnsure):
		f.refused[token] = true
		if !slices.ContainsFunc(a.World().Met(), func(fate explore.Fate) bool { return fate != explore.Crash }) {
			a.World().Violate("I7: %s cannot record a result: %v", a.Name, err)
		}
	}
}

// forgets removes the result.
func forgets(a *explore.Actor, lease source.Lease) {
	f := factsOf(a.World())
	f.forgets[lease.Record().Token] = true
	before := f.committed
	err := lease.(source.Committer).Forget(context.Background())
	a.Note("forget: %v", err)
	there := tokenIn(a.World().Server.Content(".multilock/groups/.locks/done/lock"))
	if err == nil && there != "" && !f.later(there, lease.Record().Token) {
		a.World().Violate("I7: %s has forgotten a result, and it is there", a.Name)
	}
	if err == nil && f.committed == before {
		f.committed = ""
	}
}

// draws draws two fencing numbers: larger than those of all before, and smaller than those of
// all after.
func draws(a *explore.Actor, lease source.Lease) {
	f, token := factsOf(a.World()), lease.Record().Token
	for range 2 {
		number, err := lease.Fence(context.Background())
		a.Note("fence: %d %v", number, err)
		if err != nil {
			return
		}
		for other, drawn := range f.drawn {
			if (drawn < number) != f.later(token, other) && token != other || drawn == number {
				a.World().Violate("fence: %s drew %d, and %s had drawn %d", a.Name, number, other, drawn)
			}
		}
		f.drawn[token] = max(f.drawn[token], number)
	}
}

// waits asks a few times whether nothing is held, as a barrier does. Whoever believes all the
// while that it asks is there.
func waits(a *explore.Actor) {
	src, err := sourceOf(a)
	for err != nil {
		a.Note("open: %v", err)
		a.Sleep(exploreBeat)
		src, err = sourceOf(a)
	}
	for range 4 {
		held := believers(a.World())
		vacant, err := src.Vacant(context.Background())
		a.Note("vacant: %v %v", vacant, err)
		for _, b := range held {
			if vacant && err == nil && b.Believes() {
				a.World().Violate("barrier: nothing is held, and %s believes", b.Name)
			}
		}
		a.Sleep(exploreBeat / 2)
	}
}

func believers(w *explore.World) (all []*explore.Actor) {
	for _, a := range w.Actors() {
		if a.Believes() {
			all = append(all, a)
		}
	}
	return all
}

// explored looks at each schedule within two bounds: of preemptions, and of a fault as well. In
// the long form both have one preemption more, and as many are drawn of two faults.
func explored(t *testing.T, sc *explore.Scenario, preemptions, withFault int) {
	t.Helper()
	more := 0
	if *long {
		more = 1
	}
	sc.Preemptions, sc.Faults = preemptions+more, 0
	proven(t, sc.Exhaust(t, 10*time.Minute))
	sc.Preemptions, sc.Faults = withFault+more, 1
	proven(t, sc.Exhaust(t, 10*time.Minute))
	sc.Preemptions, sc.Faults = 5, 2
	proven(t, sample(t, sc, 300))
}

// A job that runs once: its result is seen by all who come later, whatever crashes or is lost.
func TestExploreLedger(t *testing.T) {
	t.Parallel()
	sc := sceneOf(commits, commits)
	sc.Always = keepsResults
	explored(t, sc, 2, 0)
}

// A result is forgotten by one, while another runs the job again.
func TestExploreForget(t *testing.T) {
	t.Parallel()
	sc := sceneOf(commits, forgets)
	sc.Always = keepsResults
	explored(t, sc, 2, 0)
}

// Results take each other's place in the order of the locks.
func TestExploreReplace(t *testing.T) {
	t.Parallel()
	for _, first := range []func(*explore.Actor, source.Lease){replaces, commits} {
		sc := sceneOf(first, replaces)
		sc.Always = keepsResults
		explored(t, sc, 1, 0)
	}
}

func TestExploreFence(t *testing.T) {
	t.Parallel()
	explored(t, sceneOf(draws, draws), 2, 0)
}

func TestExploreBarrier(t *testing.T) {
	t.Parallel()
	explored(t, contest(contends, waits), 2, 0)
}

// Two processes of one host share what its kernel remembers.
func TestExploreOneHost(t *testing.T) {
	t.Parallel()
	sc := contest(contends, contends)
	for i := range sc.Actors {
		sc.Actors[i].Host = "one"
	}
	explored(t, sc, 2, 0)
}

// A server with an async export forgets what it had acknowledged, when it crashes and comes back.
// Then there may be two, until the next sign of life: that one says so.
func TestExploreForgetfulServer(t *testing.T) {
	t.Parallel()
	sc := contest(func(a *explore.Actor) { contendsFor(a, 3) }, contends)
	sc.Kinds, sc.Owns, sc.AtEnd, sc.Lax, sc.Down = []explore.Fate{explore.Forgets}, nil, nil, true, exploreBeat/2
	explored(t, sc, 2, 1)
}

// A server that keeps times in whole seconds shows no change that comes within one of them: what a
// client remembers of a name it goes on believing.
func TestExploreCoarse(t *testing.T) {
	t.Parallel()
	coarse := func(s *simnfs.Server) { s.Tick = time.Second }
	sc := contest(contends, contends)
	sc.Serves = coarse
	explored(t, sc, 2, 0)
	alone := contest(contends)
	alone.Serves, alone.Private, alone.Preemptions, alone.Faults = coarse, nil, 0, 2
	alone.Kinds = []explore.Fate{explore.Lost, explore.Failed}
	proven(t, alone.Exhaust(t, 10*time.Minute))
}

// A server that restarts is away for a while, in which a holder's belief does not end, and then
// lets nobody open, rename or remove anything for a while; its clock may have been wrong before.
// Who was cut off with all others is not dead.
func TestExploreRestart(t *testing.T) {
	t.Parallel()
	sc := contest(func(a *explore.Actor) { contendsFor(a, 3) }, contends)
	sc.Kinds, sc.Nap, sc.Grace = []explore.Fate{explore.Away, explore.AwayAhead}, 5*exploreBeat, 2*exploreBeat
	explored(t, sc, 2, 1)
	private := sc.Private
	sc.Nap, sc.Grace, sc.Private, sc.Preemptions, sc.Faults = 4*exploreBeat, 0, nil, 0, 1
	sc.Actors[0].Run = func(a *explore.Actor) { contendsFor(a, 16) } // until the clock is read anew
	proven(t, sc.Exhaust(t, 10*time.Minute))
	whole := sc.Kinds
	sc.Kinds, sc.Preemptions = []explore.Fate{explore.AwayAhead}, 1
	sc.Private = func(r simnfs.Request) bool { return r.Path != "/.multilock/staging" && (private(r) || !r.Changes) }
	proven(t, sc.Exhaust(t, 10*time.Minute)) // it is away while its clock is read
	sc.Kinds, sc.Private, sc.Preemptions = whole, nil, 0
	sc.Actors[1].Run = drowses
	proven(t, sc.Exhaust(t, 10*time.Minute))
}

// drowses looks at the holder more rarely than that gives signs of life: what it saw of him
// it has not watched.
func drowses(a *explore.Actor) {
	c, err := contender(a)
	if err != nil {
		a.World().Violate("contend: %v", err)
		return
	}
	contendsWith(a, c, 4*exploreBeat-time.Second/2, func(lease source.Lease) { givesSigns(a, lease, 1) })
}

// A rename that is carried out late comes while the holder is still there, and must not record
// what was said not to be recorded.
func TestExploreLate(t *testing.T) {
	t.Parallel()
	sc := sceneOf(commitsAndStays, commits)
	sc.Always = keepsResults
	sc.Kinds, sc.Delay = []explore.Fate{explore.Late, explore.Lost, explore.Failed, explore.Twice}, exploreBeat+exploreBeat/2
	explored(t, sc, 2, 0)
	sc = contest(contends, contends)
	sc.Kinds, sc.Faults, sc.Delay = []explore.Fate{explore.Late, explore.Refused}, 1, 10*exploreBeat
	proven(t, sc.Exhaust(t, 10*time.Minute))
}

func commitsAndStays(a *explore.Actor, lease source.Lease) {
	commits(a, lease)
	givesSigns(a, lease, 3)
}

// forces breaks what lives, as a person may, who knows better or not.
func forces(a *explore.Actor) {
	c, err := contender(a)
	for forced := 0; err == nil && forced < 2; {
		seen, err := c.Look(context.Background())
		if err != nil || seen.State == source.StateFree {
			forced++
			continue
		}
		a.Note("FORCES: %v", c.Force(context.Background()))
		forced++
	}
}

// Who is told that he has the lock had it, and who is told that he has released it had it until
// then, even where somebody breaks it by force.
func TestExploreForce(t *testing.T) {
	t.Parallel()
	sc := contest(acquiresFor(exploreBeat), acquiresFor(time.Millisecond), forces)
	sc.Owns, sc.AtEnd, sc.Lax, sc.Faults = nil, nil, true, 0
	sc.Preemptions = 2
	proven(t, sc.Exhaust(t, 10*time.Minute))
}

// acquiresFor tries once, and says whether another's lock is in place when it is told that its own
// is. Who has had a lock for a moment only releases it without a look.
func acquiresFor(held time.Duration) func(*explore.Actor) {
	return func(a *explore.Actor) { acquires(a, held) }
}

func acquires(a *explore.Actor, held time.Duration) {
	c, err := contender(a)
	if err != nil {
		a.Note("contend: %v", err)
		return
	}
	lease, err := c.Try(context.Background())
	a.Note("try: %v", err)
	if err != nil {
		return
	}
	a.Has = lease.Record().Token
	if there := tokenIn(a.World().Server.Content(".locks/lock/lock.locked")); there != "" && there != a.Has {
		a.World().Violate("I4: %s is told that it has the lock, and another's is in place", a.Name)
	}
	a.Sleep(held)
	wrong := ownsTheLock(a.World(), a)
	err = lease.Release(context.Background())
	a.Note("released: %v", err)
	released(a, wrong, held, err)
}

// A server that restarts forgets what it has answered: a request of which the reply was lost is
// carried out once more, a while later, when others may have come.
func TestExploreAgain(t *testing.T) {
	t.Parallel()
	again := []explore.Fate{explore.Again}
	sc := contest(contends, contends)
	sc.Kinds, sc.Preemptions, sc.Faults = again, 1, 1
	proven(t, sc.Exhaust(t, 10*time.Minute))
	for _, second := range []func(*explore.Actor, source.Lease){commits, forgets, replaces} {
		sc := sceneOf(commits, second)
		sc.Kinds, sc.Always, sc.Preemptions, sc.Faults = again, keepsResults, 0, 1
		proven(t, sc.Exhaust(t, 10*time.Minute))
	}
}

// On a filesystem that one kernel has to itself nothing is remembered, and no reply lost.
func TestExploreLocal(t *testing.T) {
	t.Parallel()
	sc := contest(contends, contends, looksOn)
	for i := range sc.Actors {
		sc.Actors[i].Host = "one"
	}
	sc.Mount = simnfs.Options{Local: true}
	sc.Kinds = []explore.Fate{explore.Crash, explore.Pause, explore.Slow, explore.Nap, explore.Doze}
	sc.Preemptions, sc.Faults = 1, 0
	proven(t, sc.Exhaust(t, 10*time.Minute))
	sc.Actors = sc.Actors[:2]
	explored(t, sc, 2, 0)
}

// BeeGFS and SMB replace no directory, not even an empty one: that is removed first.
func TestExploreReplacesNothing(t *testing.T) {
	t.Parallel()
	sc := contest(contends, contends)
	sc.Serves = func(s *simnfs.Server) { s.ReplacesNothing = true }
	explored(t, sc, 2, 0)
}

// readsOn keeps the lock's file open for long, as somebody may who looks at it by hand.
func readsOn(a *explore.Actor) {
	a.Sleep(exploreBeat / 2)
	base, err := a.OpenDir("/")
	if err != nil {
		return
	}
	file, err := base.Open(".locks/lock/lock.locked")
	a.Note("reads: %v", err)
	a.Sleep(a.World().Pause())
	if err == nil {
		_ = file.Close()
	}
}

// Somebody on the host of a waiter has the file of a dead lock open: the lock is free in time.
func TestExploreReader(t *testing.T) {
	t.Parallel()
	sc := contest(stays, func(a *explore.Actor) {
		contendsDoing(a, func(source.Lease) {
			if w := a.World(); w.Actors()[0].Crashed && w.SinceCrash() > exploreTTL+3*exploreBeat {
				w.Violate("I3: it took %s until the lock of who crashed was free", w.SinceCrash())
			}
		})
	}, readsOn)
	sc.Actors[1].Host, sc.Actors[2].Host = "two", "two"
	sc.Kinds, sc.Preemptions, sc.Faults = []explore.Fate{explore.Crash}, 0, 1
	proven(t, sc.Exhaust(t, 10*time.Minute))
}

// movesTheGroup is what a person may do who tidies up.
func movesTheGroup(a *explore.Actor) {
	a.Sleep(exploreBeat)
	base, err := a.OpenDir("/")
	if err == nil {
		err = base.Rename(".locks", base, ".moved")
	}
	a.Note("moved: %v", err)
	a.World().Facts.(*moves).moved = err == nil
}

// moves are how many signs of life were confirmed after the group was moved.
type moves struct {
	moved     bool
	confirmed int
}

// staysWhere gives signs of life, and counts those that are confirmed.
func staysWhere(a *explore.Actor) {
	c, err := contender(a)
	if err != nil {
		a.Note("contend: %v", err)
		return
	}
	lease, err := c.Try(context.Background())
	a.Note("try: %v", err)
	for range 12 {
		a.Sleep(exploreBeat)
		f := a.World().Facts.(*moves)
		if moved := f.moved; err == nil {
			if err = lease.Renew(context.Background()); err == nil && moved {
				f.confirmed++
			}
		}
		if a.Note("renewed: %v", err); f.confirmed > 7 {
			a.World().Violate("I1: eight signs of life are confirmed after the group was moved")
		}
	}
}

// Who moves a group with a lock in it: others who come there find another, so its holder learns it
// by the eighth sign of life.
func TestExploreMovedGroup(t *testing.T) {
	t.Parallel()
	sc := contest(staysWhere, movesTheGroup)
	sc.Owns, sc.AtEnd, sc.Lax = nil, nil, true
	sc.Facts = func() any { return &moves{} }
	explored(t, sc, 1, 0)
}
