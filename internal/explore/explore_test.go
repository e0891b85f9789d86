package explore_test

import (
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/explore"
	"github.com/multilock/go/multilock/vfs"
)

const tenure = 10 * time.Second

// toy is a scenario with two equal actors.
func toy(run func(*explore.Actor, vfs.Dir)) *explore.Scenario {
	program := func(a *explore.Actor) {
		dir, err := a.OpenDir("/")
		if err != nil {
			a.World().Violate("open: %v", err)
			return
		}
		run(a, dir)
	}
	return &explore.Scenario{
		Actors:      []explore.Program{{Name: "A", Run: program}, {Name: "B", Run: program}},
		Preemptions: 1, Pause: 2 * tenure, Grid: time.Second, Most: 100,
	}
}

// lookBeforeMake is a wrong lock: another actor may create it after the look.
func lookBeforeMake(a *explore.Actor, dir vfs.Dir) {
	if _, err := dir.StatName("lock"); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	if _, err := dir.OpenDurable("lock", 0o666); err == nil {
		a.Believe(time.Now().Add(tenure))
	}
}

// makeOnce is a right one, as long as no actor pauses.
func makeOnce(a *explore.Actor, dir vfs.Dir) {
	if dir.Mkdir("lock", 0o777) == nil {
		a.Believe(time.Now().Add(tenure))
	}
}

// breakByAge is right in every order, and wrong if a holder pauses: it relies on the lock from the time of
// the reply.
func breakByAge(a *explore.Actor, dir vfs.Dir) {
	for dir.Mkdir("lock", 0o777) != nil {
		if info, err := dir.StatName("lock"); err == nil && !time.Now().Before(info.ModTime.Add(tenure)) {
			_ = dir.Rmdir("lock")
		}
		a.Sleep(tenure / 2)
	}
	a.Believe(time.Now().Add(tenure))
	a.Sleep(tenure / 2)
	a.Believe(time.Time{})
	_ = dir.Rmdir("lock")
}

// A violation is found, reduced to the one choice that it needs, and reproduced with that.
func TestWrongLockIsFoundAndShrunk(t *testing.T) {
	sc := toy(lookBeforeMake)
	found := sc.Exhaust(t, 10*time.Minute)
	require.Contains(t, found.Violation, "I1: ")
	require.Len(t, found.Choices, 1)
	require.Contains(t, found.Trace, "VIOLATION I1")

	again := sc.Replay(t, found.Choices)
	require.Equal(t, found.Violation, again.Violation)
	require.Equal(t, found.Trace, again.Trace, "the same choices are the same schedule")
	require.Empty(t, sc.Replay(t, nil).Violation, "without them nothing is wrong")

	drawn := sc.Sample(t, 1, 1000)
	require.Contains(t, drawn.Violation, "I1: ")
	require.Len(t, drawn.Choices, 1)
	require.Equal(t, drawn.Trace, sc.Sample(t, 1, 1000).Trace, "the same seed draws the same")
}

func TestRightLockIsShownRight(t *testing.T) {
	sc := toy(makeOnce)
	sc.Preemptions, sc.Faults = 2, 2
	sc.Kinds = []explore.Fate{explore.Crash, explore.Lost, explore.Failed, explore.Twice, explore.Late}
	r := sc.Exhaust(t, 10*time.Minute)
	require.Empty(t, r.Violation, r.Trace)
	require.True(t, r.Complete)
}

// Some bugs only appear after a long pause.
func TestFaultsAreTried(t *testing.T) {
	sc := toy(breakByAge)
	r := sc.Exhaust(t, 10*time.Minute)
	require.Empty(t, r.Violation, r.Trace)
	require.True(t, r.Complete)
	sc.Faults, sc.Kinds = 1, []explore.Fate{explore.Slow}
	require.Contains(t, sc.Exhaust(t, 10*time.Minute).Violation, "I1: ")
}

// Each schedule within the bounds is played, and none twice: those of two actors with three requests each,
// and switches whenever the other one can continue.
func TestEveryOrderOnce(t *testing.T) {
	sc := toy(func(_ *explore.Actor, dir vfs.Dir) {
		for range 3 {
			_, _ = dir.Stat()
		}
	})
	sc.Preemptions = 100
	orders := map[string]bool{}
	sc.AtEnd = func(w *explore.World) { orders[w.Order()] = true }
	r := sc.Exhaust(t, 10*time.Minute)
	require.True(t, r.Complete)
	require.Len(t, orders, r.Schedules)
	require.Equal(t, choose(8, 4), r.Schedules, "each begins, and makes three requests")
}

// choose returns the number of ways to take k of n.
func choose(n, k int) int {
	if k == 0 || k == n {
		return 1
	}
	return choose(n-1, k-1) + choose(n-1, k)
}

// A violation that needs many choices, each with a visible effect, is reached step by step, although it is
// hardly ever drawn at once.
func TestGuideGoesOnFromWhatIsNew(t *testing.T) {
	const steps = 8
	sc := toy(nil)
	sc.Actors[0].Run = func(a *explore.Actor) {
		dir, _ := a.OpenDir("/")
		for n := range steps {
			_ = dir.Mkdir(strconv.Itoa(n), 0o777)
			a.Sleep(time.Second)
			_ = dir.Rmdir(strconv.Itoa(n))
			a.Sleep(time.Second)
		}
	}
	sc.Actors[1].Run = func(a *explore.Actor) {
		dir, _ := a.OpenDir("/")
		seen := 0
		a.Sleep(time.Second)
		for range steps {
			if _, err := dir.StatName(strconv.Itoa(seen)); err == nil {
				seen++ // it must continue at that very time, before the removal
				_ = dir.Mkdir("seen "+strconv.Itoa(seen), 0o777)
			}
			a.Sleep(2 * time.Second)
		}
		if seen == steps {
			a.World().Violate("I0: it saw each of them")
		}
	}
	sc.Preemptions, sc.Most = 0, 1000
	require.Empty(t, sc.Sample(t, 1, 2000).Violation)
	found := sc.Guide(t, 1, 2000)
	require.Contains(t, found.Violation, "I0: ")
	require.Len(t, found.Choices, steps)
	require.Equal(t, found.Schedules, sc.Guide(t, 1, 2000).Schedules, "the same seed draws the same")
}

// A schedule without an end is reported.
func TestStuck(t *testing.T) {
	sc := toy(func(a *explore.Actor, dir vfs.Dir) {
		for dir.Mkdir("lock", 0o777) != nil { // no actor removes it
			a.Sleep(time.Second)
		}
	})
	require.True(t, strings.HasPrefix(sc.Exhaust(t, 10*time.Minute).Violation, "stuck: "))
}

// Skipping known states loses no outcome: with and without it, the same violations are found, and the
// schedules have the same final states.
func TestWhatIsRememberedLeavesOutNoEnd(t *testing.T) {
	ends := func(remember bool) (ends map[string]bool, r explore.Report) {
		sc := toy(breakByAge)
		sc.Preemptions, sc.Faults, sc.Remember = 2, 1, remember
		sc.Kinds = []explore.Fate{explore.Crash, explore.Nap, explore.Lost, explore.Failed, explore.Twice, explore.Late}
		ends = map[string]bool{}
		sc.AtEnd = func(w *explore.World) { ends[w.End()] = true }
		r = sc.Exhaust(t, 10*time.Minute)
		require.Empty(t, r.Violation, r.Trace)
		require.True(t, r.Complete)
		return ends, r
	}
	every, slow := ends(false)
	remembered, quick := ends(true)
	require.Equal(t, every, remembered)
	require.Less(t, quick.Schedules, slow.Schedules)
	t.Log(slow, "; ", quick)
}
