// Command waiting measures how long those wait who take one lock again and again.
//
//	waiting DIR WAY LOOPERS CYCLES HOLD
//
// WAY is bare (polling, and nothing else), polling (as on a network filesystem), woken (as
// on a filesystem of this host alone) or fair (in a queue). It prints one line: the waits' median, 99th
// percentile and longest, how often the one who was overtaken most was, and the time of all.
package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "waiting:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 5 {
		return fmt.Errorf("usage: waiting DIR WAY LOOPERS CYCLES HOLD")
	}
	loopers, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	cycles, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	hold, err := time.ParseDuration(args[4])
	if err != nil {
		return err
	}
	t := trial{dir: args[0], way: args[1], cycles: cycles, hold: hold}
	start := time.Now()
	var group sync.WaitGroup
	for range loopers {
		group.Go(t.loop)
	}
	group.Wait()
	if t.failed == nil {
		t.tell(time.Since(start))
	}
	return t.failed
}

// trial is one measurement.
type trial struct {
	dir, way string
	cycles   int
	hold     time.Duration

	mu     sync.Mutex
	turns  []turn
	failed error
}

// turn is one wait.
type turn struct{ came, got time.Time }

// loop takes turns, with a source of its own, as a process would have.
func (t *trial) loop() {
	if err := t.cycle(); err != nil {
		t.mu.Lock()
		t.failed = err
		t.mu.Unlock()
	}
}

func (t *trial) cycle() error {
	opened, err := fslock.Open(fslock.Options{Base: t.dir})
	if err != nil {
		return err
	}
	defer opened.Close() //nolint:errcheck // it only closes descriptors
	src, err := t.as(opened)
	if err != nil {
		return err
	}
	for range t.cycles {
		came := time.Now()
		lock, err := multilock.Acquire(context.Background(), src, "busy", multilock.Options{Fair: t.way == "fair"})
		if err != nil {
			return err
		}
		got := time.Now()
		time.Sleep(t.hold)
		if err := lock.Release(context.Background()); err != nil {
			return err
		}
		t.mu.Lock()
		t.turns = append(t.turns, turn{came, got})
		t.mu.Unlock()
	}
	return nil
}

func (t *trial) as(src *fslock.Source) (multilock.Source, error) {
	switch t.way {
	case "bare":
		return quiet{src}, nil
	case "polling":
		src.Turns().Prompt = false
		return remembering{quiet{src}, src}, nil
	case "woken", "fair":
		return src, nil
	}
	return nil, fmt.Errorf("unknown way %q", t.way)
}

func (t *trial) tell(all time.Duration) {
	var waits []time.Duration
	most := 0
	for _, one := range t.turns {
		waits = append(waits, one.got.Sub(one.came))
		passed := 0
		for _, other := range t.turns {
			if other.came.After(one.came) && other.got.Before(one.got) {
				passed++
			}
		}
		most = max(most, passed)
	}
	slices.Sort(waits)
	median, longest := waits[len(waits)/2], waits[len(waits)-1]
	fmt.Printf("%-8s median %8.3f s, p99 %8.3f s, longest %8.3f s (%.1f times the median), overtaken at most %d times, all in %.1f s\n",
		t.way, median.Seconds(), waits[len(waits)*99/100].Seconds(), longest.Seconds(), longest.Seconds()/median.Seconds(), most, all.Seconds())
}

// quiet is a source that tells nobody that a lock is free.
type quiet struct{ source.Source }

func (q quiet) Contend(ctx context.Context, name string, claim source.Claim, policy source.StalePolicy) (source.Contender, error) {
	c, err := q.Source.Contend(ctx, name, claim, policy)
	return asking{c}, err
}

type asking struct{ source.Contender }

func (asking) Wake() <-chan struct{} { return nil }

// remembering has the memory of its turns as well.
type remembering struct {
	quiet
	of *fslock.Source
}

func (r remembering) Turns() *source.Turns { return r.of.Turns() }
