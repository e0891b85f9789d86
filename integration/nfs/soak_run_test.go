package nfs_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/multilock/go/internal/testkit/worker"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/locktest"
)

// How long the cluster may take to make progress once nothing is wrong any more. A
// TCP connection that was silent for some seconds may stay so for as long again,
// the server answers no renames in its grace period of ten seconds, and all of
// this is emulated on a machine that has other things to do.
const (
	patience = 2 * time.Minute // for each lock to be taken again
	slowest  = 5 * time.Minute // for each worker to get a lock, and to end
)

// trouble is the time of the faults. It ends early when something was found.
func (s *soak) trouble(d time.Duration, recovered func(after string)) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var others sync.WaitGroup
	defer others.Wait()
	others.Go(func() { s.killWorkers(ctx, s.rng(2)) })
	others.Go(func() { s.stopWorkers(ctx, s.rng(3)) })
	others.Go(func() { s.look(ctx, cancel) })
	w := newWeather(s)
	for worker.Pause(ctx, w.between(0.2, 1)) {
		faults := w.next()
		s.round(ctx, faults)
		recovered(fmt.Sprint(faults))
	}
}

func (s *soak) rng(who uint64) *rand.Rand { return rand.New(rand.NewPCG(s.seed, who)) }

// look reads the history now and then, and ends the trouble if it cannot be true.
func (s *soak) look(ctx context.Context, found context.CancelFunc) {
	for n := 1; worker.Pause(ctx, s.shift.TTL); n++ {
		events := s.history.All()
		if locktest.Check(events) != nil || s.Failed() {
			found()
		}
		if n%15 == 0 {
			s.Logf("%d acquisitions until now", locktest.Finished(events))
		}
	}
}

// round strikes, and heals. Even when its time is up, it leaves nothing broken.
func (s *soak) round(ctx context.Context, faults []fault) {
	var longest time.Duration
	for _, f := range faults {
		s.tally(f.kind)
		s.must(f.strike())
		longest = max(longest, f.lasts)
	}
	worker.Pause(ctx, longest)
	for _, f := range slices.Backward(faults) { // the server first: a host that boots needs it
		s.must(f.heal())
	}
}

func (s *soak) must(err error) {
	if err != nil {
		s.Error(err)
	}
}

// tally counts what was done to the cluster.
func (s *soak) tally(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tallies[what]++
}

// recover waits until every lock has been acquired since now.
func (s *soak) recover(after string) {
	healed := locktest.Now()
	if s.await(s.shift.Names, healed, patience) {
		s.recoveries = append(s.recoveries, (locktest.Now() - healed).Round(time.Millisecond))
		return
	}
	s.Logf("after %s", after)
}

// await waits until each lock, or each worker, has had an acquisition since a moment.
func (s *soak) await(those []string, since, limit time.Duration) bool {
	for end := locktest.Now() + limit; ; time.Sleep(50 * time.Millisecond) {
		late := late(s.history.All(), those, since)
		if len(late) == 0 {
			return true
		}
		if locktest.Now() > end {
			s.Errorf("stuck for %s: %s", limit, late)
			s.tellLocks()
			return false
		}
	}
}

// late are those of the locks, or places, that had no acquisition since a moment.
func late(events []locktest.Event, those []string, since time.Duration) (late []string) {
	last := map[string]time.Duration{}
	for _, e := range events {
		if e.Kind == locktest.Acquired {
			place, _, _ := strings.Cut(e.Proc, ".")
			last[e.Name], last[place] = e.Time, e.Time
		}
	}
	for _, name := range those {
		if last[name] < since {
			late = append(late, name)
		}
	}
	return late
}

// tellLocks tells what the server has of the locks.
func (s *soak) tellLocks() {
	src := s.source(s, hosts()[0])
	for _, name := range s.shift.Names {
		seen, err := multilock.Inspect(context.Background(), src, name, multilock.Patience{})
		s.Logf("%s: %s by %s (%s): %s, %v", name, seen.State, seen.Record.Holder, seen.Record.Token, seen.Why, err)
	}
}

// killWorkers kills a worker every few seconds, whatever else goes wrong.
func (s *soak) killWorkers(ctx context.Context, rng *rand.Rand) {
	for worker.Pause(ctx, worker.UpTo(rng, 2*s.shift.TTL)) {
		if s.kill(s.slots[rng.IntN(len(s.slots))]) {
			s.tally("worker kill")
		}
	}
}

// stopWorkers stops one for longer than its TTL.
func (s *soak) stopWorkers(ctx context.Context, rng *rand.Rand) {
	ttl := s.shift.TTL
	for worker.Pause(ctx, worker.UpTo(rng, ttl)) {
		if s.suspend(ctx, s.slots[rng.IntN(len(s.slots))], ttl*5/4+worker.UpTo(rng, ttl)) {
			s.tally("worker stop")
		}
	}
}
