package scenes_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/multilock/go/internal/explore"
	"github.com/multilock/go/internal/explore/locks"
	"github.com/multilock/go/multilock/source"
)

// facts are the observations of a run, to compare with what the actors are told.
type facts struct {
	order     []string // tokens, in the order in which their locks were created on the server
	drawn     map[string]uint64
	committed string          // the last one whose commit succeeded
	refused   map[string]bool // tokens whose commit failed
	forgets   map[string]bool // tokens whose holders have begun to delete the result
	runs      context.Context //nolint:containedctx // of the job that was begun last; nil: none
	runner    *explore.Actor
}

func newFacts() any {
	return &facts{drawn: map[string]uint64{}, refused: map[string]bool{}, forgets: map[string]bool{}}
}

func factsOf(w *explore.World) *facts { return w.Facts.(*facts) }

// notesOrder records whose lock is on the server.
func notesOrder(w *explore.World) string {
	f := factsOf(w)
	if token := locks.Holder(w, "lock"); token != "" && !slices.Contains(f.order, token) {
		f.order = append(f.order, token)
	}
	return ""
}

// later reports whether a lock was created after another one.
func (f *facts) later(token, than string) bool {
	return slices.Index(f.order, token) > slices.Index(f.order, than)
}

// keepsResults checks that a committed result exists until a later holder replaces or deletes it, and that
// none exists whose commit failed.
func keepsResults(w *explore.World) string {
	notesOrder(w)
	f := factsOf(w)
	there := locks.TokenIn(locks.Result(w, "lock"))
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

// sceneOf is a contest in which each actor does something with the lock.
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

// reads reads the result without the lock, as a run does first. It may be outdated.
func reads(a *explore.Actor) {
	src, err := locks.Source(a)
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

// commits runs the job if it has no result, and records one.
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

// replaces records a result unconditionally, as if there were none or only its own. A holder that crashed
// before cannot prevent that.
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

// forgets deletes the result.
func forgets(a *explore.Actor, lease source.Lease) {
	f := factsOf(a.World())
	f.forgets[lease.Record().Token] = true
	before := f.committed
	err := lease.(source.Committer).Forget(context.Background())
	a.Note("forget: %v", err)
	there := locks.TokenIn(locks.Result(a.World(), "lock"))
	if err == nil && there != "" && !f.later(there, lease.Record().Token) {
		a.World().Violate("I7: %s has forgotten a result, and it is there", a.Name)
	}
	if err == nil && f.committed == before {
		f.committed = ""
	}
}

// draws draws two fencing numbers: larger than all earlier ones, and smaller than all later ones.
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

// waits polls a few times for an empty group, as a barrier does. It must notice an actor that relies on the lock
// during the whole poll.
func waits(a *explore.Actor) {
	src, err := locks.Source(a)
	for err != nil {
		a.Note("open: %v", err)
		a.Sleep(exploreBeat)
		src, err = locks.Source(a)
	}
	for range 4 {
		held := believers(a.World())
		empty, err := src.Empty(context.Background())
		a.Note("empty: %v %v", empty, err)
		for _, b := range held {
			if empty && err == nil && b.Believes() {
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

// explored plays each schedule within two bounds: with preemptions, and with a fault as well. The long form
// adds one preemption to both, and draws as many schedules with two faults.
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

// A job that runs once: all later holders see its result, despite any crash or loss.
// Rule: commit, outcome, I7, I3
func TestExploreLedger(t *testing.T) {
	t.Parallel()
	sc := sceneOf(commits, commits)
	sc.Always = keepsResults
	for _, sc.Whole = range []bool{false, true} {
		explored(t, sc, 2, 0)
	}
}

// One process deletes a result, while another runs the job again.
// Rule: forget, I7
func TestExploreForget(t *testing.T) {
	t.Parallel()
	sc := sceneOf(commits, forgets)
	sc.Always = keepsResults
	explored(t, sc, 2, 0)
}

// Results replace each other in the order of the locks.
// Rule: commit, I7
func TestExploreReplace(t *testing.T) {
	t.Parallel()
	for _, first := range []func(*explore.Actor, source.Lease){replaces, commits} {
		sc := sceneOf(first, replaces)
		sc.Always = keepsResults
		explored(t, sc, 1, 0)
	}
}

// Rule: fence
func TestExploreFence(t *testing.T) {
	t.Parallel()
	explored(t, sceneOf(draws, draws), 2, 0)
}

// Rule: barrier
func TestExploreBarrier(t *testing.T) {
	t.Parallel()
	explored(t, contest(contends, waits), 2, 0)
}

// Two processes of one host share its kernel's cache.
// Rule: I1, I2, stale-names
func TestExploreOneHost(t *testing.T) {
	t.Parallel()
	sc := contest(contends, contends)
	for i := range sc.Actors {
		sc.Actors[i].Host = "one"
	}
	explored(t, sc, 2, 0)
}

// A rename that is executed late, while the holder is still there, must not record what was reported as
// not recorded.
// Rule: commit, rename, I4, I7
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
