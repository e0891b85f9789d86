package nfs_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/cooklock"
	"github.com/multilock/go/multilock/locktest"
)

// swapTTL leaves an emulated machine time for the signs of life of all who swap at once.
// The lock of a process that was killed is cleared by the next one on its host.
const swapTTL = 20 * time.Second

// cookRegister is a register as a host's NFS client shows it.
func cookRegister(t testing.TB, p place, h host) cooklock.Register {
	t.Helper()
	return cooklock.LedgerRegister{Ledger: p.source(t, h), Name: "nightly", TTL: swapTTL}
}

// The register of the cooking lock is one for all hosts, whichever version of NFS
// they speak: swaps from all of them at the same time form one chain, in the order
// of their numbers, and a peek shows nothing that was not there.
func TestCookRegister(t *testing.T) {
	needLab(t)
	if testing.Short() {
		t.Skip("takes 20 seconds; TestCookHistoryOfProcesses shows the same and worse")
	}
	const swappers = 2 // on each host
	const swaps = 8
	p := newPlace(t)
	log := &swapLog{}
	var group sync.WaitGroup
	for _, h := range hosts() {
		for i := range swappers {
			s := hostSwapper{register: cookRegister(t, p, h), tell: log.add, name: fmt.Sprint(h.name, "-", i)}
			group.Go(func() {
				for n := range swaps {
					if err := s.round(within(t), n); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	group.Wait()
	confirmed, err := locktest.CheckSwaps(log.events)
	require.NoError(t, err)
	require.Equal(t, len(hosts())*swappers*swaps, confirmed)
	for _, h := range hosts() {
		_, number, err := cookRegister(t, p, h).Peek(within(t))
		require.NoError(t, err)
		require.EqualValues(t, confirmed, number, "all is quiet, and %s is shown an old value", h.name)
	}
}

type swapLog struct {
	mu     sync.Mutex
	events []locktest.SwapEvent
}

func (l *swapLog) add(e locktest.SwapEvent) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
	return nil
}

// hostSwapper looks at a register and swaps, and tells of all that it does.
type hostSwapper struct {
	register cooklock.Register
	tell     func(locktest.SwapEvent) error
	name     string
}

func (s hostSwapper) round(ctx context.Context, n int) error {
	found, number, err := s.register.Peek(ctx)
	if err != nil {
		return err
	}
	if err := s.tell(locktest.SwapEvent{Op: "peek", Value: string(found), Number: number, Time: locktest.Now()}); err != nil {
		return err
	}
	value := fmt.Sprint(s.name, "-", n)
	if err := s.tell(locktest.SwapEvent{Op: "begin", Value: value, Time: locktest.Now()}); err != nil {
		return err
	}
	old, number, err := locktest.UntilSwapped(2*time.Second, func() ([]byte, uint64, error) { return s.register.Swap(ctx, []byte(value)) })
	return errors.Join(err, s.tell(locktest.SwapAnswer(value, old, number, err)))
}

// What every source promises whose locks end by time, through all hosts' clients.
func TestCookingLockAcrossHosts(t *testing.T) {
	needLab(t)
	if testing.Short() {
		t.Skip("takes minutes; TestCookHistoryOfProcesses shows what the lock stands on")
	}
	locktest.Run(t, locktest.Fixture{
		TTL:    4 * conformanceTTL, // the lock of a swap has a quarter of it
		Fences: true, Refused: []string{".", "..", "a/b"},
		Timed: func(t testing.TB, period time.Duration) func() multilock.Source {
			p := newPlace(t)
			var opened atomic.Int64
			return func() multilock.Source {
				files := p.source(t, hosts()[opened.Add(1)%int64(len(hosts()))])
				src, err := cooklock.New(cooklock.Options{Ledger: files, Period: period})
				require.NoError(t, err)
				return src
			}
		},
	})
}
