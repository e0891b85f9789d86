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

// looksOn watches the lock, breaks it if it is dead, and wants nothing itself.
func looksOn(a *explore.Actor) {
	c, err := contender(a)
	if err != nil {
		a.Note("contend: %v", err)
		return
	}
	for free := 0; free < 2; {
		seen, err := c.Look(context.Background())
		if err == nil && seen.State == source.StateFree {
			free++
			a.Sleep(exploreBeat)
			continue
		}
		locks.Breaks(a, c)
	}
}

var (
	long        = flag.Bool("long", false, "play more schedules, for up to an hour")
	preemptions = flag.Int("preemptions", 1, "of TestExploreBreaker")
	faults      = flag.Int("faults", 0, "of TestExploreBreaker")
	limit       = flag.Duration("limit", time.Hour, "for TestExploreBreaker")
	workers     = flag.Int("workers", 1, "how many schedules of TestExploreBreaker are played at a time")
)

// Two contenders and one who only breaks: in the long form, each schedule with 3 preemptions and
// 2 faults that an hour allows.
func TestExploreBreaker(t *testing.T) {
	t.Parallel()
	sc := contest(contends, contends, looksOn)
	sc.Preemptions, sc.Faults, sc.Workers = *preemptions, *faults, *workers
	if *long {
		sc.Preemptions, sc.Faults = 3, 2
	}
	proven(t, sc.Exhaust(t, *limit))
}
