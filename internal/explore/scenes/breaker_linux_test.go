package scenes_test

import (
	"context"
	"flag"
	"testing"
	"time"

	"github.com/multilock/go/internal/explore"
	"github.com/multilock/go/internal/explore/locks"
	"github.com/multilock/go/multilock/source"
)

// looksOn watches the lock, and breaks it if it is dead, but does not acquire it.
func looksOn(a *explore.Actor) {
	c, err := observer(a)
	if err != nil {
		a.World().Violate("observe: %v", err)
		return
	}
	for free := 0; free < 2; {
		seen, err := c.Look(context.Background())
		rest := exploreBeat
		if err == nil && seen.State == source.StateFree {
			free++
		} else {
			rest = locks.Breaks(a, c)
		}
		if rest > 0 {
			a.Rest(rest, "looks on", c, free)
		}
	}
}

var (
	long        = flag.Bool("long", false, "play more schedules, for up to an hour")
	preemptions = flag.Int("preemptions", -1, "of TestExploreBreaker and TestExplorePair, with -faults")
	faults      = flag.Int("faults", 0, "of TestExploreBreaker and TestExplorePair, with -preemptions")
	inTurn      = flag.Bool("in-turn", false, "of TestExploreBreaker and TestExplorePair: who wakes goes on in turn")
	limit       = flag.Duration("limit", time.Hour, "for each of the two")
	workers     = flag.Int("workers", 1, "how many schedules of them are played at a time")
)

// Two contenders and one actor that only breaks: in the long form, each schedule with 3 preemptions and
// 2 faults, in order, within an hour.
// Rule: I1, I2, I3, I4, break
func TestExploreBreaker(t *testing.T) {
	t.Parallel()
	bounded(t, contest(contends, contends, looksOn), bounds{2, 0, false}, bounds{0, 1, false}, bounds{1, 1, true})
}

// The same with two contenders, which may also break.
// Rule: I1, I2, I3, I4, break
func TestExplorePair(t *testing.T) {
	t.Parallel()
	bounded(t, contest(contends, contends), bounds{1, 1, false})
}

// bounds limit a search.
type bounds struct {
	preemptions, faults int
	inTurn              bool
}

// bounded plays each schedule within the requested bounds, or within small ones that take little time.
func bounded(t *testing.T, sc *explore.Scenario, within ...bounds) {
	t.Helper()
	alike(sc)
	switch {
	case *preemptions >= 0:
		within = []bounds{{*preemptions, *faults, *inTurn}}
	case *long:
		within = []bounds{{3, 2, true}}
	}
	for _, b := range within {
		sc.Preemptions, sc.Faults, sc.InTurn, sc.Workers = b.preemptions, b.faults, b.inTurn, *workers
		proven(t, sc.Exhaust(t, *limit))
	}
}
