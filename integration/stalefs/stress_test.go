//go:build linux

package stalefs_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/stalefs"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/vfs"
)

var (
	longStress = flag.Bool("long", false, "stress: 10 minutes instead of 20 seconds")
	seedStress = flag.Uint64("seed", 0, "stress: the seed of what happens to whom, 0 for a new one")
)

const (
	stressTTL   = time.Second
	stressHosts = 6
	perHost     = 2
)

// Workers on several hosts take locks in turns, while replies are lost, calls come
// late or long after they were given up, hosts are cut off and the server is away.
// A witness and the history of what each believed say whether two ever held one
// lock at once; and when the faults are over every lock is to be had.
func TestStress(t *testing.T) {
	t.Parallel()
	duration := 20 * time.Second
	if *longStress {
		duration = 10 * time.Minute
	}
	s := newStress(t, asNFS(vfs.OS{}), 0)
	s.run(duration)
	s.takeAll()
	s.report()
	require.NoError(t, s.result.err())
	require.NoError(t, locktest.Check(s.result.events(t)))
}

// The same with a server whose clock is so coarse that some changes go unnoticed.
func TestStressWithACoarseClock(t *testing.T) {
	t.Parallel()
	duration := 8 * time.Second
	if *longStress {
		duration = 5 * time.Minute
	}
	s := newStress(t, asNFS(vfs.OS{}), 4*time.Millisecond)
	s.run(duration)
	s.takeAll()
	s.report()
	require.NoError(t, s.result.err())
	require.NoError(t, locktest.Check(s.result.events(t)))
}

// stress is one run.
type stress struct {
	*testing.T
	cluster *cluster
	place   string
	names   []string
	seed    uint64
	through vfs.FS
	calm    time.Duration // the longest time between two cuts of one host
	result  *result

	mu     sync.Mutex
	faults map[string]int
}

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
		calm: 8 * stressTTL, result: newResult(), faults: map[string]int{},
	}
}

// run lets everybody work for a time, or until two have met.
func (s *stress) run(d time.Duration) {
	ctx, cancel := context.WithTimeout(s.result.untilViolated(s.Context()), d)
	defer cancel()
	var trouble, work sync.WaitGroup
	over, dismiss := context.WithCancel(s.Context())
	defer dismiss()
	var crew []*worker
	for i := range stressHosts * perHost {
		crew = append(crew, s.hire(i))
	}
	for _, w := range crew {
		work.Go(func() { w.work(over) })
	}
	for i, h := range s.cluster.hosts {
		h.Inject(s.counted(stalefs.Random(s.seed+uint64(i), odds())))
		trouble.Go(func() { s.cutOff(ctx, h, s.rng(100+i)) })
	}
	trouble.Go(func() { s.stopServer(ctx, s.rng(200)) })
	trouble.Wait()
	for _, h := range s.cluster.hosts {
		h.Inject(nil)
	}
	s.cluster.server.Land()
	dismiss()
	work.Wait()
}

// odds let about one call in twenty go wrong.
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

// cutOff cuts a host off every few seconds, at times for longer than a TTL.
func (s *stress) cutOff(ctx context.Context, h *host, rng *rand.Rand) {
	for pause(ctx, upTo(rng, s.calm)) {
		s.count("host cut off")
		h.Cut()
		pause(ctx, upTo(rng, 3*stressTTL))
		h.Heal()
	}
}

func (s *stress) stopServer(ctx context.Context, rng *rand.Rand) {
	for pause(ctx, upTo(rng, 16*stressTTL)) {
		s.count("server away")
		s.cluster.server.Stop()
		pause(ctx, upTo(rng, 3*stressTTL/2))
		s.cluster.server.Start()
	}
}

func upTo(rng *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(rng.Int64N(int64(d) + 1))
}

// pause waits, and says whether ctx has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	return ctx.Err() == nil
}

// takeAll takes every lock from every host, now that nothing goes wrong any more.
func (s *stress) takeAll() {
	for _, h := range s.cluster.hosts {
		src, err := fslock.Open(fslock.Options{Base: h.on(s.place), Self: h.identity(s)})
		require.NoError(s, err)
		defer src.Close()
		for _, name := range s.names {
			lock, err := multilock.Acquire(within(s), src, name, multilock.Options{TTL: long, Poll: 50 * time.Millisecond})
			require.NoError(s, err, "%s is stuck", name)
			require.NoError(s, lock.Release(s.Context()))
		}
	}
	require.Empty(s, s.cluster.names(s, s.place, fslock.DefaultGroup), "nothing is held")
}

func (s *stress) report() {
	count := map[locktest.Kind]int{}
	for _, e := range s.result.events(s) {
		count[e.Kind]++
	}
	s.Logf("%v; faults: %v", count, s.faults)
	require.Positive(s, count[locktest.Acquired])
	require.NotEmpty(s, s.faults, "nothing went wrong")
}
