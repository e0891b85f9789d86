package nfs_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/integration/broken"
	"github.com/multilock/go/internal/testkit/worker"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/locktest"
)

var (
	durationFlag = flag.Duration("duration", 0, "soak: for how long faults are injected (default 90s, with -short 20s)")
	seedFlag     = flag.Uint64("seed", 0, "soak: random seed, 0 for a new one")
	ttlFlag      = flag.Duration("ttl", 4*time.Second, "soak: the locks' time to live")
	workersFlag  = flag.Int("workers", 2, "soak: worker processes on each host")
)

// Whatever fails, no lock has two holders at a time, fencing numbers grow, and every lock can be
// acquired again once the faults are over. The register that all workers swap stays linearizable: a
// swap by a killed process takes effect at any time after its start, or never; every other swap
// takes effect between its start and its reply.
// Rule: I1, I3, fence
func TestSoak(t *testing.T) {
	needLab(t)
	duration := *durationFlag
	if duration == 0 {
		duration = time.Duration(jobsAtLength(20, 90)) * time.Second
	}
	s := newSoak(t, "")
	s.begin()
	s.recover("start")
	s.trouble(duration, s.recover)
	s.await(s.slotNames(), locktest.Now(), slowest)
	s.end()
	require.NoError(t, locktest.Check(s.history.All()))
	s.requireOneRegister()
	s.takeAll()
	s.report()
}

// A test that cannot fail proves nothing: with a protocol that breaks one of its rules, the same
// run must find two holders at once.
// Rule: none (test of the soak)
func TestBrokenVariantsAreCaught(t *testing.T) {
	needLab(t)
	if testing.Short() {
		t.Skip("may take minutes for each variant")
	}
	for _, v := range broken.Variants() {
		t.Run(v.Name, func(t *testing.T) {
			const limit = 5 * time.Minute // most are caught within seconds
			s := newSoak(t, v.Name)
			s.begin()
			s.trouble(limit, func(string) {}) // a broken protocol need not recover
			s.end()
			require.Error(t, locktest.Check(s.history.All()), "%s: violation not detected", v.What)
		})
	}
}

// soak is one run.
type soak struct {
	place
	*testing.T
	seed    uint64
	shift   shift // common to all workers
	history *worker.History
	slots   []*slot
	hosts   map[string]*sync.RWMutex // locked while a host is crashed, until it is up again
	dismiss context.CancelFunc
	workers sync.WaitGroup

	mu         sync.Mutex
	tallies    map[string]int
	recoveries []time.Duration
}

func newSoak(t *testing.T, variant string) *soak {
	t.Helper()
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d, ttl %s", seed, *ttlFlag)
	p := newPlace(t)
	kept, err := os.Create(filepath.Join("/out", p.name+".jsonl")) // collected by the lab's --out
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, kept.Close()) })
	s := &soak{
		place: p, T: t, seed: seed, history: worker.NewHistory(t, kept),
		shift:   shift{Names: []string{"alpha", "beta", "gamma"}, TTL: *ttlFlag, Swaps: outside(t), Broken: variant},
		hosts:   map[string]*sync.RWMutex{},
		tallies: map[string]int{},
	}
	for _, h := range hosts() {
		s.hosts[h.name] = &sync.RWMutex{}
		// setClock gives a host its own clock. Only processes started after that can see a wrong
		// time.
		h.setClock(t, 0)
		for n := range *workersFlag {
			s.slots = append(s.slots, &slot{name: fmt.Sprintf("%s-%d", h.name, n), host: h})
		}
	}
	return s
}

func (s *soak) slotNames() (names []string) {
	for _, slot := range s.slots {
		names = append(names, slot.name)
	}
	return names
}

// begin fills all slots. Each slot always has one worker, as long as its host is up.
func (s *soak) begin() {
	working, dismiss := context.WithCancel(context.Background())
	s.dismiss = dismiss
	for i, slot := range s.slots {
		s.workers.Go(func() { s.fill(working, slot, s.seed+uint64(i)<<32) })
	}
}

// end asks the workers to finish cleanly and waits for them.
func (s *soak) end() {
	s.dismiss()
	slow := time.AfterFunc(slowest, func() {
		for _, slot := range s.slots {
			if w := slot.worker(); w != nil {
				s.Errorf("%s did not end", w.name)
				_ = w.Process.Signal(unix.SIGQUIT) // prints its stacks
			}
		}
	})
	defer slow.Stop()
	s.workers.Wait()
	s.history.Close(s)
}

// takeAll acquires and releases every lock once more after all workers have ended: nothing that a
// dead process left may prevent it.
func (s *soak) takeAll() {
	src := s.source(s, hosts()[0])
	for _, name := range s.shift.Names {
		require.NoError(s, acquire(s, src, name, longOptions()).Release(within(s)), "%s, after all workers ended", name)
	}
	require.Empty(s, s.entries(s, fslock.DefaultGroup), "a lock is still held")
	s.Logf("locks taken over from holders that were dead or sent no heartbeat: %d", len(takenOver(s, src)))
}

// report logs the number of events, faults and recoveries.
func (s *soak) report() {
	count := map[locktest.Kind]int{}
	for _, e := range s.history.All() {
		count[e.Kind]++
	}
	s.Logf("events: %v", count)
	s.Logf("faults: %s", strings.TrimPrefix(fmt.Sprint(s.tallies), "map"))
	s.Logf("time from the end of the faults until every lock was acquired again: %s", s.recoveries)
}
