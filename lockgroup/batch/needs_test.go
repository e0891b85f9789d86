package batch_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/lockgroup/batch"
	"github.com/multilock/go/lockgroup/internal/grouptest"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// usage is what a host's running jobs use.
type usage struct {
	mu         sync.Mutex
	cpus       int
	memory     int64
	begun      []int
	mostCPUs   int
	mostMemory int64
	needsOf    func(seq int) batch.Needs
	length     func(seq int) time.Duration
	fails      bool // some jobs fail the first time
}

func (u *usage) add(seq int, sign int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := u.needsOf(seq)
	u.cpus, u.memory = u.cpus+sign*max(n.CPUs, 1), u.memory+int64(sign)*n.Memory
	u.mostCPUs, u.mostMemory = max(u.mostCPUs, u.cpus), max(u.mostMemory, u.memory)
	if sign > 0 {
		u.begun = append(u.begun, seq)
	}
}

// job uses what it needs.
func (u *usage) job(ctx context.Context, a batch.Attempt) error {
	u.add(a.Seq, +1)
	defer u.add(a.Seq, -1)
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(u.length(a.Seq)):
	}
	if u.fails && a.Number == 1 && a.Seq%7 == 0 {
		return errWork
	}
	return nil
}

// With any needs, on hosts with any budgets, of which some leave or are busy at times: no host exceeds its
// budget, and the list is completed.
// Rule: none (needs)
func TestBudgetsAreKept(t *testing.T) {
	seed := rand.Uint64() //nolint:gosec // chance needs no secrecy
	for n := range uint64(60) {
		t.Run(fmt.Sprint(seed+n), func(t *testing.T) {
			inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, _ *runs) {
				var src multilock.Source = v
				if n%5 == 0 {
					src = v.Venue // a separate lock for each job
				}
				anyBudgets(t, src, seed+n)
			})
		})
	}
}

func anyBudgets(t *testing.T, src multilock.Source, seed uint64) {
	t.Helper()
	const mostCPUs, mostMemory = 8, 1000
	dice := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // chance needs no secrecy
	chance := func(of ...time.Duration) time.Duration { return of[dice.IntN(len(of))] }
	jobs, each, needs, lengths := 1+dice.IntN(200), []batch.Needs{}, []batch.Needs{}, []time.Duration{}
	for seq := 1; seq <= jobs; seq++ {
		if dice.IntN(5) == 0 {
			needs = append(needs, batch.Needs{From: seq, CPUs: dice.IntN(mostCPUs + 1), Memory: dice.Int64N(mostMemory + 1)})
		}
		now := batch.Needs{}
		if len(needs) > 0 {
			now = needs[len(needs)-1]
		}
		each, lengths = append(each, now), append(lengths, chance(0, time.Millisecond, time.Second, 10*time.Minute))
	}
	var hosts sync.WaitGroup
	for host := range 1 + dice.IntN(4) {
		time.Sleep(chance(0, time.Second, 30*time.Minute))
		used := &usage{fails: true, needsOf: func(seq int) batch.Needs { return each[seq-1] }, length: func(seq int) time.Duration { return lengths[seq-1] }}
		list := make([]batch.Job, jobs)
		for i := range list {
			list[i] = batch.Job{Name: fmt.Sprint("job", i), Work: used.job}
		}
		cpus, memory := mostCPUs+dice.IntN(9), mostMemory+dice.Int64N(2000)
		b := prepare(t, src, list, batch.Options{Workers: cpus, Memory: memory, Needs: needs, Retries: 1, Busy: busyTimes(chance, host)})
		ctx, end := context.WithCancel(inTime(t))
		defer end()
		if leaves := chance(time.Second, 20*time.Minute); host > 0 && dice.IntN(2) == 0 {
			time.AfterFunc(leaves, []func(){end, b.Drain}[dice.IntN(2)])
		}
		hosts.Go(func() {
			report, err := b.Run(ctx)
			if left := errors.Is(err, batch.ErrDrained) || errors.Is(err, context.Canceled); err != nil && !left || report.Trouble != nil {
				t.Errorf("host %d: %+v %v", host, report, err)
			}
			if used.mostCPUs > cpus || used.mostMemory > memory {
				t.Errorf("host %d gave %d of %d cpus and %d of %d memory", host, used.mostCPUs, cpus, used.mostMemory, memory)
			}
		})
	}
	hosts.Wait()
	time.Sleep(time.Minute) // for calls that hung
}

// A job with large needs is not overtaken, so it does not wait for ever; other free resources are used.
// Rule: none (needs)
func TestHeavyJobComesToItsTurn(t *testing.T) {
	inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, _ *runs) {
		const heavy = 50
		needs := []batch.Needs{{From: heavy, CPUs: 3, Memory: 10}, {From: heavy + 1}}
		used := &usage{length: func(seq int) time.Duration { return time.Duration(10+seq%3) * time.Second }, needsOf: func(seq int) batch.Needs {
			return map[bool]batch.Needs{true: needs[0]}[seq == heavy]
		}}
		list := make([]batch.Job, 104)
		for i := range list {
			list[i] = batch.Job{Name: fmt.Sprintf("job%03d", i+1), Work: used.job}
		}
		start := time.Now()
		_, err := prepare(t, v, list, batch.Options{Workers: 4, Memory: 10, Needs: needs}).Run(inTime(t))
		require.NoError(t, err)
		for i := range heavy + 1 { // in the list's order, except those that run at the same time
			require.InDelta(t, i+1, used.begun[i], 9, "%v", used.begun[:heavy+1])
		}
		require.Equal(t, 4, used.mostCPUs)
		require.Less(t, time.Since(start), 7*time.Minute)
	})
}

// All hosts must have the same needs, and a host that can never run a job does not begin.
// Rule: manifest
func TestOtherNeeds(t *testing.T) {
	inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) {
		list := ran.jobs(9, succeeds)
		large := func(needs ...batch.Needs) batch.Options {
			return batch.Options{Workers: 8, Memory: 100, Needs: needs, Barriers: []int{3}}
		}
		_, err := prepare(t, v, list, large(batch.Needs{From: 1}, batch.Needs{From: 2, CPUs: 4, Memory: 7}, batch.Needs{From: 5, CPUs: 4, Memory: 7}, batch.Needs{From: 10, CPUs: 99})).Run(inTime(t))
		require.NoError(t, err)
		_, err = prepare(t, v, list, large(batch.Needs{From: 2, CPUs: 4, Memory: 7})).Run(inTime(t))
		require.NoError(t, err, "they mean the same")
		_, err = prepare(t, v, list, large()).Run(inTime(t))
		require.ErrorContains(t, err, "the group was given the same jobs with barriers after 3, needs from 2 cpus=4 mem=7, and here with barriers after 3")
		for _, wrong := range [][]batch.Needs{{{From: 0}}, {{From: 2}, {From: 2}}, {{From: 1, CPUs: -1}}, {{From: 1, Memory: -1}}, {{From: 9, CPUs: 9}}, {{From: 9, Memory: 101}}} {
			_, err := batch.New(v, list, large(wrong...))
			require.ErrorIs(t, err, source.ErrInvalid, "%v", wrong)
		}
	})
}
