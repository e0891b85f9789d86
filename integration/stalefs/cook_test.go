//go:build linux

package stalefs_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/stalefs"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/cooklock"
	"github.com/multilock/go/multilock/locktest"
)

// Runs the suite for sources whose locks end by time, with stale caches.
// Rule: none (docs/internals/cooking.md)
func TestCookingLockConformance(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, stalefs.Options{})
	locktest.Run(t, locktest.Fixture{
		TTL: conformanceTTL, Fences: true, Refused: []string{".", "..", "a/b"},
		Timed: func(t testing.TB, period time.Duration) func() multilock.Source {
			place := c.newPlace(t)
			var opened atomic.Int64
			return func() multilock.Source {
				files := c.results(t, c.hosts[opened.Add(1)%int64(len(c.hosts))], place)
				src, err := cooklock.New(cooklock.Options{Ledger: files, Period: period})
				require.NoError(t, err)
				return src
			}
		},
	})
}

// The register stays linearizable while replies are lost, requests are executed twice or long after
// they failed, and clients have stale names cached.
// Rule: none (docs/internals/cooking.md)
func TestCookRegisterUnderFaults(t *testing.T) {
	for name, tick := range map[string]time.Duration{"fine clock": 0, "coarse clock": 4 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			swapUnderFaults(t, tick)
		})
	}
}

func swapUnderFaults(t *testing.T, tick time.Duration) {
	const swappers, enough = 1, 40 // on each host; swaps of all
	c := newCluster(t, 4, stalefs.Options{})
	c.server.Tick = tick
	place, log := c.newPlace(t), &swapLog{}
	last := c.register(t, c.hosts[3], place) // this host's cache is empty
	log.swap(t, last, "first")               // the filesystem test runs without faults
	var group sync.WaitGroup
	for i, h := range c.hosts[:3] {
		h.Inject(stalefs.Random(uint64(i), stalefs.Odds{
			Retransmitted: 0.03, Lost: 0.01, Dropped: 0.005, Zombie: 0.005, Delay: 3 * time.Millisecond, Later: 20 * time.Millisecond,
		}))
		for j := range swappers {
			register := c.register(t, h, place)
			group.Go(func() {
				for n := 0; log.count("end") < enough; n++ {
					log.peek(t, register)
					log.swap(t, register, fmt.Sprintf("%s-%d-%d", h.name, j, n))
				}
			})
		}
	}
	group.Wait()
	for _, h := range c.hosts {
		h.Inject(nil)
	}
	require.True(t, log.swap(t, last, "last"), "a swap without faults must succeed")
	confirmed, err := locktest.CheckSwaps(log.events)
	require.NoError(t, err)
	t.Logf("%d swaps confirmed, %d failed, %d unsure", confirmed, log.count("fail"), log.count("unsure"))
	require.Positive(t, log.count("fail")+log.count("unsure"), "inconclusive: no fault had an effect")
}

// swapTTL is how long a swap blocks the others if its lock cannot be released.
const swapTTL = 500 * time.Millisecond

func (c *cluster) register(t testing.TB, h *host, place string) cooklock.Register {
	t.Helper()
	return cooklock.LedgerRegister{Ledger: c.results(t, h, place), Name: "nightly", TTL: swapTTL}
}

// swapLog records the events of all swappers.
type swapLog struct {
	mu     sync.Mutex
	events []locktest.SwapEvent
}

func (l *swapLog) add(e locktest.SwapEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Time = locktest.Now()
	l.events = append(l.events, e)
}

func (l *swapLog) count(op string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		if e.Op == op {
			n++
		}
	}
	return n
}

func (l *swapLog) swap(t testing.TB, register cooklock.Register, value string) (done bool) {
	l.add(locktest.SwapEvent{Op: "begin", Value: value})
	old, number, err := locktest.UntilSwapped(50*time.Millisecond, func() ([]byte, uint64, error) { return register.Swap(within(t), []byte(value)) })
	l.add(locktest.SwapAnswer(value, old, number, err))
	return err == nil
}

func (l *swapLog) peek(t testing.TB, register cooklock.Register) {
	if value, number, err := register.Peek(within(t)); err == nil {
		l.add(locktest.SwapEvent{Op: "peek", Value: string(value), Number: number})
	}
}

// A client that cannot see that the directory of results has changed, because the server's clock
// has not ticked since, has a replaced file cached. A swap never takes that file for the current
// result.
// Rule: outcome, stale-names
func TestCookSwapIsNotMisledByACache(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, stalefs.Options{})
	place := c.newPlace(t)
	a, b := c.register(t, c.hosts[0], place), c.register(t, c.hosts[1], place)
	log := &swapLog{}
	log.swap(t, a, "first")
	c.server.Tick = 1000 * time.Hour
	log.swap(t, a, "second")
	value, _, err := b.Peek(within(t))
	require.NoError(t, err)
	require.Equal(t, "second", string(value))
	log.swap(t, a, "third")
	log.swap(t, b, "fourth")
	_, err = locktest.CheckSwaps(log.events)
	require.NoError(t, err, "%+v", log.events)
}
