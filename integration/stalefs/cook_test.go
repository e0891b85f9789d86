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

// What every source promises whose locks end by time, with stale caches.
func TestCookingLockConformance(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, stalefs.Options{})
	locktest.Run(t, locktest.Fixture{
		TTL: conformanceTTL, Fences: true, Refused: []string{".", "..", "a/b"},
		Timed: func(t testing.TB, period time.Duration) func() multilock.Source {
			place := c.newPlace(t)
			var opened atomic.Int64
			return func() multilock.Source {
				dir := c.cookDirectory(t, c.hosts[opened.Add(1)%int64(len(c.hosts))], place)
				src, err := cooklock.New(cooklock.Options{Open: dir.Register, Names: dir.Names, Period: period})
				require.NoError(t, err)
				return src
			}
		},
	})
}

func (c *cluster) cookDirectory(t testing.TB, h *host, place string) *cooklock.Directory {
	t.Helper()
	dir, err := cooklock.OpenDirectory(cooklock.DirectoryOptions{Base: h.on(place)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dir.Close()) })
	return dir
}

// The register stays one while replies are lost, requests are carried out twice or
// long after their caller was told that they failed, and clients remember what was.
func TestCookRegisterUnderFaults(t *testing.T) {
	t.Parallel()
	const swappers, swaps = 2, 40 // on each host
	c := newCluster(t, 3, stalefs.Options{})
	place, log := c.newPlace(t), &swapLog{}
	last := c.register(t, c.hosts[0], place)
	log.swap(t, last, "first") // the filesystem is tested without faults
	var group sync.WaitGroup
	for i, h := range c.hosts {
		h.Inject(stalefs.Random(uint64(i), stalefs.Odds{
			Retransmitted: 0.03, Lost: 0.02, Dropped: 0.02, Zombie: 0.02, Delay: 3 * time.Millisecond, Later: 20 * time.Millisecond,
		}))
		for j := range swappers {
			register := c.register(t, h, place)
			group.Go(func() {
				for n := range swaps {
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
	require.True(t, log.swap(t, last, "last"), "whoever comes when all is well succeeds")
	confirmed, err := locktest.CheckSwaps(log.events)
	require.NoError(t, err)
	t.Logf("%d of %d swaps confirmed, %d failed, %d unsure", confirmed, 2+len(c.hosts)*swappers*swaps, log.count("fail"), log.count("unsure"))
	require.Greater(t, confirmed, swaps, "hardly a swap succeeded: nothing is shown")
	require.Positive(t, log.count("fail")+log.count("unsure"), "no fault was felt: nothing is shown")
}

func (c *cluster) register(t testing.TB, h *host, place string) cooklock.Register {
	t.Helper()
	register, err := c.cookDirectory(t, h, place).Register("nightly")
	require.NoError(t, err)
	return register
}

// swapLog is what all swappers tell.
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
	for _, e := range l.events {
		if e.Op == op {
			n++
		}
	}
	return n
}

func (l *swapLog) swap(t testing.TB, register cooklock.Register, value string) (done bool) {
	l.add(locktest.SwapEvent{Op: "begin", Value: value})
	old, number, err := register.Swap(within(t), []byte(value))
	l.add(locktest.SwapAnswer(value, old, number, err))
	return err == nil
}

func (l *swapLog) peek(t testing.TB, register cooklock.Register) {
	if value, number, err := register.Peek(within(t)); err == nil {
		l.add(locktest.SwapEvent{Op: "peek", Value: string(value), Number: number})
	}
}
