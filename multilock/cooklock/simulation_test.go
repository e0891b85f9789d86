package cooklock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/cooklock"
	"github.com/multilock/go/multilock/source"
)

// A simulation lets processes compete while each step may take any time, and may fail before or
// after it took effect; a look may show any older value; and processes crash, and restart without
// memory.
type simulation struct {
	*testing.T
	cell *cell
	end  time.Time

	mu    sync.Mutex
	draws *rand.Rand
	cooks []source.Timed // all leases so far
}

const (
	simulatedChefs = 4
	simulatedTime  = 60 * period
)

func TestNeverTwoAtATime(t *testing.T) {
	cooks := 0
	for seed := range uint64(60) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { cooks += simulate(t, seed) })
		})
	}
	require.Greater(t, cooks, 60*5, "hardly anybody ever had the lock: nothing is shown")
}

func simulate(t *testing.T, seed uint64) (cooks int) {
	s := &simulation{T: t, cell: newCell(), end: time.Now().Add(simulatedTime), draws: rand.New(rand.NewPCG(seed, 0))}
	s.cell.before = func(string) error { return s.trouble(errors.New("no reply, and nothing done")) }
	s.cell.after = func(op string) error {
		if err := s.trouble(errors.New("no reply")); err != nil && op == swap {
			return errors.Join(source.ErrUnsure, err)
		}
		return nil
	}
	s.cell.stale = func(held int) int {
		if s.draw(8) == 0 {
			return s.draw(held)
		}
		return held - 1
	}
	var chefs sync.WaitGroup
	for range simulatedChefs {
		chefs.Go(s.chef)
	}
	chefs.Wait()
	return len(s.cooks)
}

func (s *simulation) draw(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draws.IntN(n)
}

// moment is a random time up to limit.
func (s *simulation) moment(limit time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Duration(s.draws.Int64N(int64(limit)))
}

// trouble sleeps: mostly for a moment, sometimes for long, and rarely for very long.
func (s *simulation) trouble(err error) error {
	switch s.draw(40) {
	case 0:
		time.Sleep(s.moment(3 * period))
	case 1, 2, 3, 4:
		time.Sleep(s.moment(period))
	case 5:
		return err
	}
	time.Sleep(s.moment(time.Second))
	return nil
}

func (s *simulation) chef() {
	for time.Now().Before(s.end) {
		src := s.cell.chef(s.T, cooklock.Options{})
		for alive := true; alive && time.Now().Before(s.end); alive = s.draw(10) > 0 {
			contender, err := src.Contend(context.Background(), "nightly", source.Claim{}, source.StalePolicy{})
			if err != nil {
				s.Error(err)
				return
			}
			s.compete(contender)
		}
	}
}

// compete retries until it acquires the lock, or gives up.
func (s *simulation) compete(contender source.Contender) {
	for range 1000 {
		lease, err := contender.Try(context.Background())
		if err == nil {
			s.cook(lease.(source.Timed))
			return
		}
		if s.draw(200) == 0 {
			return
		}
		time.Sleep(s.moment(period / 20))
	}
}

// cook checks that the time of every earlier holder is over.
func (s *simulation) cook(lease source.Timed) {
	s.mu.Lock()
	for _, other := range s.cooks {
		if left := -other.Ends().Elapsed(); left > 0 && lease.Ends().Elapsed() < 0 {
			s.Errorf("two have the lock: the other one for another %s", left)
		}
	}
	s.cooks = append(s.cooks, lease)
	s.mu.Unlock()
	if s.draw(3) > 0 {
		time.Sleep(max(-lease.Ends().Elapsed(), 0)) // hold the lock until the very end
	}
}
