//go:build linux

package stalefs_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/stalefs"
	"github.com/multilock/go/internal/testkit/worker"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/vfs"
)

var (
	longStress = flag.Bool("long", false, "stress: 10 minutes instead of 20 seconds")
	seedStress = flag.Uint64("seed", 0, "stress: random seed, 0 for a new one")
)

const (
	stressTTL   = time.Second
	stressHosts = 6
	perHost     = 2
)

// Workers on several hosts acquire locks in turn, while replies are lost, calls are late or
// executed long after they were given up, hosts are cut off and the server is down. The history of
// all workers shows whether a lock ever had two holders at once. When the faults are over, every
// lock can be acquired. With a coarse server clock some changes go unnoticed.
// Rule: I1, I3
func TestStress(t *testing.T) {
	for name, c := range map[string]struct {
		tick        time.Duration
		short, long time.Duration
	}{
		"fine clock":   {short: 20 * time.Second, long: 10 * time.Minute},
		"coarse clock": {tick: 4 * time.Millisecond, short: 8 * time.Second, long: 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStress(t, asNFS(vfs.OS{}), c.tick)
			if *longStress {
				c.short = c.long
			}
			s.run(c.short)
			s.takeAll()
			s.report()
			require.NoError(t, s.check())
		})
	}
}

// stress is one run.
type stress struct {
	*testing.T
	cluster *cluster
	place   string
	names   []string
	seed    uint64
	through vfs.FS
	calm    time.Duration // the longest time between two cuts of a host

	history *worker.History

	mu     sync.Mutex
	faults map[string]int
}

// check checks the history recorded so far.
func (s *stress) check() error { return locktest.Check(s.history.All()) }

func newStress(t *testing.T, through vfs.FS, tick time.Duration) *stress {
	seed := *seedStress
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	c := newCluster(t, 0, stalefs.Options{})
	c.server.Tick = tick
	for i := range stressHosts {
		opt := stalefs.Options{}
		if i%2 == 1 {
			opt.Soft = stressTTL / 3
		}
		c.add(t, fmt.Sprintf("host%d", i+1), opt)
	}
	return &stress{
		T: t, cluster: c, place: c.newPlace(t), names: []string{"alpha", "beta"}, seed: seed, through: through,
		calm: 8 * stressTTL, history: worker.NewHistory(t, io.Discard), faults: map[string]int{},
	}
}

// run runs the workers for a while, or until a violation is found.
func (s *stress) run(d time.Duration) {
	ctx, cancel := context.WithTimeout(s.Context(), d)
	defer cancel()
	var trouble, work sync.WaitGroup
	over, dismiss := context.WithCancel(s.Context())
	defer dismiss()
	for i := range stressHosts * perHost {
		w := s.hire(i)
		work.Go(func() { assert.NoError(s, w.Work(over)) })
	}
	for i, h := range s.cluster.hosts {
		h.Inject(s.counted(stalefs.Random(s.seed+uint64(i), odds())))
		trouble.Go(func() { s.cutOff(ctx, h, s.rng(100+i)) })
	}
	trouble.Go(func() { s.stopServer(ctx, s.rng(200)) })
	for worker.Pause(ctx, 2*stressTTL) {
		if s.check() != nil {
			cancel()
		}
	}
	trouble.Wait()
	for _, h := range s.cluster.hosts {
		h.Inject(nil)
	}
	s.cluster.server.Land()
	dismiss()
	work.Wait()
	s.history.Close(s)
}

func (s *stress) hire(i int) *worker.Worker {
	h := s.cluster.hosts[i%len(s.cluster.hosts)]
	src := s.cluster.open(s, h, s.place, s.through)
	s.Cleanup(func() { _ = src.Close() })
	return &worker.Worker{
		Source: src, Log: locktest.NewRecorder(s.history.In, fmt.Sprintf("%s-%d", h.name, i)), Rand: s.rng(i),
		Names: s.names, TTL: stressTTL, Poll: stressTTL / 20,
	}
}

// odds make about one call in twenty fail.
func odds() stalefs.Odds {
	return stalefs.Odds{
		Retransmitted: 0.02, Lost: 0.01, Dropped: 0.01, Zombie: 0.01,
		Delay: stressTTL / 50, Later: 2 * stressTTL,
	}
}

func (s *stress) rng(who int) *rand.Rand { return rand.New(rand.NewPCG(s.seed, uint64(who))) }

// counted counts the faults by their outcome.
func (s *stress) counted(inject stalefs.Injector) stalefs.Injector {
	return func(c stalefs.Call) stalefs.Fault {
		f := inject(c)
		if f.Outcome != stalefs.Answered {
			s.count(f.Outcome.String())
		}
		return f
	}
}

func (s *stress) count(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[what]++
}

// cutOff cuts a host off every few seconds, sometimes for longer than a TTL.
func (s *stress) cutOff(ctx context.Context, h *host, rng *rand.Rand) {
	for worker.Pause(ctx, worker.UpTo(rng, s.calm)) {
		s.count("host cut off")
		h.Cut()
		worker.Pause(ctx, worker.UpTo(rng, 3*stressTTL))
		h.Heal()
	}
}

func (s *stress) stopServer(ctx context.Context, rng *rand.Rand) {
	for worker.Pause(ctx, worker.UpTo(rng, 16*stressTTL)) {
		s.count("server away")
		s.cluster.server.Stop()
		worker.Pause(ctx, worker.UpTo(rng, 3*stressTTL/2))
		s.cluster.server.Start()
	}
}

// takeAll acquires every lock from every host after all faults are over.
func (s *stress) takeAll() {
	for _, h := range s.cluster.hosts {
		src := s.cluster.open(s, h, s.place, vfs.OS{})
		for _, name := range s.names {
			lock, err := multilock.Acquire(within(s), src, name, multilock.Options{TTL: long, Poll: 50 * time.Millisecond})
			require.NoError(s, err, "%s is stuck", name)
			require.NoError(s, lock.Release(s.Context()))
		}
		require.NoError(s, src.Close())
	}
	require.Empty(s, s.cluster.names(s, s.place, fslock.DefaultGroup), "a lock is still held")
}

func (s *stress) report() {
	count := map[locktest.Kind]int{}
	for _, e := range s.history.All() {
		count[e.Kind]++
	}
	s.Logf("%v; faults: %v", count, s.faults)
	require.Positive(s, count[locktest.Acquired])
	require.NotEmpty(s, s.faults, "no fault was injected")
}
