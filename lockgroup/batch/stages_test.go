package batch_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/lockgroup/batch"
	"github.com/multilock/go/lockgroup/internal/grouptest"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// order checks that no job begins before all jobs before its barrier have succeeded.
type order struct {
	mu       sync.Mutex
	barriers []int
	ended    []bool
	early    []string
}

func newOrder(jobs int, barriers []int) *order {
	return &order{barriers: barriers, ended: make([]bool, jobs)}
}

func (o *order) begin(seq int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := 0
	for _, after := range o.barriers {
		if after < seq {
			before = after
		}
	}
	if at := slices.Index(o.ended[:before], false); at >= 0 {
		o.early = append(o.early, fmt.Sprintf("job %d began before job %d had succeeded", seq, at+1))
	}
}

func (o *order) end(seq int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended[seq-1] = true
}

// Hosts come and go, some with a list that extends the others'; jobs fail at first, take any time, and are
// given back: nothing begins too early, everything ends, each job succeeds once.
// Rule: chunks, add, give-back
func TestBarriersHold(t *testing.T) {
	seed := rand.Uint64() //nolint:gosec // chance needs no secrecy
	for n := range uint64(50) {
		t.Run(fmt.Sprint(seed+n), func(t *testing.T) {
			inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) { anyBarriers(t, v, ran, seed+n) })
		})
	}
}

func anyBarriers(t *testing.T, v *grouptest.ChunkVenue, ran *runs, seed uint64) {
	t.Helper()
	dice := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // the same
	chance := func(of ...time.Duration) time.Duration { return of[dice.IntN(len(of))] }
	v.Latency = chance(0, time.Millisecond, 20*time.Millisecond)
	list := make([]batch.Job, 3+dice.IntN(200))
	var barriers []int
	for at := 1 + dice.IntN(60); at < len(list); at += 1 + dice.IntN(100) {
		barriers = append(barriers, at)
	}
	kept := newOrder(len(list), barriers)
	for i := range list {
		name, length, fails := fmt.Sprint("job", i), chance(0, time.Millisecond, 30*time.Second, 10*time.Minute), dice.IntN(9) == 0
		list[i] = batch.Job{Name: name, Work: func(ctx context.Context, a batch.Attempt) error {
			kept.begin(a.Seq)
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(length):
			}
			if fails && a.Number == 1 {
				return errWork
			}
			ran.add(name)
			kept.end(a.Seq)
			return nil
		}}
	}
	order := []batch.Order{batch.OrderList, batch.OrderRandom}[dice.IntN(2)]
	var hosts sync.WaitGroup
	lengths := lengthsOfLists(dice, 1+dice.IntN(4), len(list))
	for host, length := range lengths {
		time.Sleep(chance(0, time.Second, 30*time.Minute))
		var src multilock.Source = v
		if seed%5 == 0 {
			src = v.Venue // a separate lock for each job
		}
		known := slices.DeleteFunc(slices.Clone(barriers), func(after int) bool { return after >= length })
		b := prepare(t, src, list[:length], batch.Options{Workers: 1 + dice.IntN(8), Retries: 1, Order: order, Barriers: known, Add: true})
		ctx, end := context.WithCancel(inTime(t))
		defer end()
		if leaves := chance(time.Second, 20*time.Minute); host > 0 && host < len(lengths)-1 && dice.IntN(2) == 0 {
			time.AfterFunc(leaves, []func(){end, b.Drain}[dice.IntN(2)])
		}
		hosts.Go(func() {
			report, err := b.Run(ctx)
			late := length < len(list) && errors.As(err, new(*batch.ManifestError)) // a longer list is there
			if left := errors.Is(err, batch.ErrDrained) || errors.Is(err, context.Canceled); err != nil && !left && !late || report.Trouble != nil {
				t.Errorf("host %d: %+v %v", host, report, err)
			}
		})
	}
	hosts.Wait()
	require.Empty(t, kept.early)
	ran.requireOnce(t, len(list))
	time.Sleep(time.Minute) // for calls that hung
}

// lengthsOfLists returns how much of the list each host gets; the last host gets all of it.
func lengthsOfLists(dice *rand.Rand, hosts, jobs int) []int {
	lengths := slices.Repeat([]int{jobs}, hosts)
	if dice.IntN(2) == 0 {
		for i := range hosts - 1 {
			lengths[i] = 1 + dice.IntN(jobs)
		}
		slices.Sort(lengths)
	}
	return lengths
}

// A job that fails with no attempts left blocks the jobs behind the barrier on all hosts, at any time; when
// its result is deleted and it succeeds, they run.
// Rule: chunks
func TestFailureBeforeABarrier(t *testing.T) {
	inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) {
		works := false
		list := ran.jobs(200, func(_ context.Context, a batch.Attempt) error {
			if time.Sleep(time.Minute); a.Seq == 7 && !works {
				return errWork
			}
			return nil
		})
		run := func() (batch.Report, error) {
			return prepare(t, v, list, batch.Options{Workers: 3, Barriers: []int{100, 150}}).Run(inTime(t))
		}
		var hosts sync.WaitGroup
		for n := range 3 {
			time.Sleep(time.Duration(n) * 20 * time.Minute)
			hosts.Go(func() {
				report, err := run()
				var stopped *batch.BarrierError
				if !errors.Is(err, lockgroup.ErrNotDone) || !errors.As(err, &stopped) || *stopped != (batch.BarrierError{After: 100, Failed: 1, Behind: 100}) || report.Done != 99 {
					t.Errorf("%+v %v", report, err)
				}
			})
		}
		hosts.Wait()
		ran.requireOnce(t, 100)
		works = true
		v.Forget(joblist.ChunkName(source.Range{From: 1, To: 25}))
		report, err := run()
		require.NoError(t, err)
		require.Equal(t, 200, report.Done)
		require.Equal(t, 1, ran.of("job200"))
	})
}

// All hosts must have the same barriers.
// Rule: manifest
func TestOtherBarriers(t *testing.T) {
	inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) {
		list := ran.jobs(9, succeeds)
		_, err := prepare(t, v, list, batch.Options{Barriers: []int{3, 5}}).Run(inTime(t))
		require.NoError(t, err)
		for _, barriers := range [][]int{nil, {3}} {
			_, err = prepare(t, v, list, batch.Options{Barriers: barriers}).Run(inTime(t))
			require.ErrorAs(t, err, new(*batch.ManifestError))
			require.ErrorContains(t, err, "the group was given the same jobs with barriers after 3 5")
		}
		for _, wrong := range [][]int{{0}, {9}, {3, 3}, {5, 3}} {
			_, err := batch.New(v, list, batch.Options{Barriers: wrong})
			require.ErrorIs(t, err, source.ErrInvalid)
		}
	})
}
