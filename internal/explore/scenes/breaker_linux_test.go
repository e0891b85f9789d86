package scenes_test

import (
	"context"
	"flag"
	"testing"
	"time"

	"github.com/multilock/go/internal/explore"
	"github.com/multilock/go/multilock/source"
)

// looksOn watches the lock, breaks it if it is dead, and wants nothing itself.
func looksOn(a *explore.Actor) {
	c, err := contender(a)
	if err != nil {
		a.Note("contend: %v", err)
		return
	}
	for free := 0; free < 2; {
		seen, err := c.Look(context.Background())
		rest := exploreBeat
		if err == nil && seen.State == source.StateFree {
			free++
		} else {
			rest = breaks(a, c)
		}
		if rest > 0 {
			a.Rest(rest, "looks on", c, free)
		}
	}
}

var (
	long        = flag.Bool("long", false, "play more schedules, for up to an hour")
	preemptions = flag.Int("preemptions", 1, "of TestExploreBreaker and TestExplorePair")
	faults      = flag.Int("faults", 1, "of TestExploreBreaker and TestExplorePair")
	limit       = flag.Duration("limit", time.Hour, "for each of the two")
	workers     = flag.Int("workers", 1, "how many schedules of them are played at a time")
)

// Two contenders and one who only breaks: in the long form, each schedule with 3 preemptions and
// 2 faults that an hour allows.
func TestExploreBreaker(t *testing.T) {
	t.Parallel()
	bounded(t, contest(contends, contends, looksOn))
}

// Two contenders, who are breakers as well: the same.
func TestExplorePair(t *testing.T) {
	t.Parallel()
	bounded(t, contest(contends, contends))
}

func bounded(t *testing.T, sc *explore.Scenario) {
	t.Helper()
	sc.Preemptions, sc.Faults, sc.Workers = *preemptions, *faults, *workers
	if *long {
		sc.Preemptions, sc.Faults = 3, 2
	}
	proven(t, sc.Exhaust(t, *limit))
}
