package batch

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/lockgroup/internal/grouptest"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// The components of a batch, each in isolation.

func partsOf(t *testing.T, src Source, jobs int, opt Options) *common {
	t.Helper()
	list := make([]Job, jobs)
	for i := range list {
		list[i].Name = fmt.Sprintf("job%03d", i+1)
	}
	require.NoError(t, opt.check(list))
	c := &common{src: src, jobs: list, opt: opt, schedule: newSchedule(list, opt)}
	var take, work context.CancelCauseFunc
	c.working, work = context.WithCancelCause(t.Context())
	c.taking, take = context.WithCancelCause(c.working)
	c.stops.begin(take, work)
	c.schedule.divide(nil, false)
	return c
}

// ended returns the record of a chunk whose jobs have these exit codes.
func ended(u *unit, retry bool, exits ...int) multilock.Result {
	c := &source.Chunk{From: u.From, To: u.To}
	for i, exit := range exits {
		n := u.From + i
		c.Jobs = append(c.Jobs, source.ChunkJob{Number: n, Name: fmt.Sprintf("job%03d", n), Exit: exit, Attempt: 1, Retry: retry && exit != 0})
	}
	c.Count()
	return multilock.Result{Name: u.name(), Token: "theirs", Attempt: 1, Final: c.Final(), Chunk: c}
}

// The schedule needs no source: it decides what to claim, begin, retry and give back, and when the batch
// is over.
// Rule: chunks, give-back
func TestSchedule(t *testing.T) {
	q := partsOf(t, nil, 16, Options{Workers: 1, Retries: 1, Barriers: []int{13}}).schedule
	i, found := q.pick()
	require.True(t, found)
	h := &holding{unit: i}
	q.begin(h)
	require.Equal(t, source.Range{From: 1, To: 3}, q.units[i].Range, "a quarter of what is in front of the barrier")
	task, err := q.take(t.Context())
	require.NoError(t, err)
	require.Equal(t, 0, task.job)

	q.jobTime.add(time.Hour)
	q.giveBack()
	require.Equal(t, source.Range{From: 3, To: 3}, h.parts[0].Range, "half of what would wait")
	parts := h.parts
	h.running--
	q.committed(h, multilock.Result{}, []attempt{{0, multilock.Result{Attempt: 1, Exit: 1}}}, parts)
	require.Len(t, q.ready, 2, "job 2, and job 1 once more")
	require.Equal(t, 2, q.ready[1].number)
	q.committed(h, multilock.Result{Final: true}, []attempt{{1, multilock.Result{Attempt: 1, Final: true}}, {0, multilock.Result{Attempt: 2, Final: true}}}, nil)
	require.Equal(t, counts{open: 14, done: 2}, q.counts)

	for i := range q.units {
		if u := &q.units[i]; u.To <= 13 && u.state != unitFinal {
			require.Equal(t, unitOpen, u.state, u.Range)
			q.merge(i, ended(u, false, make([]int, u.length())...))
		}
	}
	require.Equal(t, counts{open: 3, done: 13}, q.counts)
	i, found = q.pick()
	require.True(t, found, "the barrier is open")
	u := &q.units[i]
	require.Equal(t, source.Range{From: 14, To: 14}, u.Range)
	q.merge(i, ended(u, true, 1))
	require.False(t, q.over(), "it may be tried again")
	q.merge(i, ended(u, false, 1))
	require.Equal(t, counts{open: 2, done: 13, failed: 1}, q.counts)
	require.Equal(t, 1, q.failures[13].Exit)
}

// Each poll reads the results that are not known to be final, each once.
// Rule: no-map
func TestExchange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := grouptest.NewVenue()
		c := partsOf(t, v, 12, Options{Workers: 1})
		x := newExchange(c)
		first, second := &c.schedule.units[0], &c.schedule.units[1]
		v.Commit(ended(first, false, 0, 0, 0))
		v.Commit(ended(second, false, 0))
		require.NoError(t, x.open(t.Context()))
		require.Equal(t, counts{open: 8, done: 4}, c.schedule.counts)
		require.Equal(t, unitFinal, first.state)
		require.Equal(t, 2, v.Count("result"))

		require.False(t, x.poll(t.Context()), "nothing has ended since")
		require.Equal(t, 3, v.Count("result"), "the second one only")
		v.Commit(ended(second, false, 0, 3))
		require.True(t, x.poll(t.Context()))
		require.Equal(t, counts{open: 7, done: 4, failed: 1}, c.schedule.counts)
		require.False(t, x.poll(t.Context()))
		require.Equal(t, 4, v.Count("result"))

		v.Fail("results", errors.New("the server is down"))
		require.False(t, x.poll(t.Context()))
		require.ErrorContains(t, x.trouble, "the server is down")
	})
}

// The recorder commits ended attempts together, and leaves uncommitted jobs to other hosts.
// Rule: chunks
func TestRecorder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := grouptest.NewVenue()
		c := partsOf(t, v, 12, Options{Workers: 1})
		x := newExchange(c)
		require.NoError(t, x.open(t.Context()))
		r := &recorder{common: c, exchange: x}
		hold := func(i int) *holding {
			c.schedule.set(i, unitTaken)
			lock, err := multilock.TryOnce(t.Context(), v, c.schedule.units[i].name(), multilock.Options{})
			require.NoError(t, err)
			h := &holding{unit: i, lock: lock, begun: time.Now()}
			c.schedule.change(func() { c.schedule.begin(h) })
			return h
		}
		works := func(h *holding) {
			for range c.schedule.units[h.unit].length() {
				task, err := c.schedule.take(t.Context())
				require.NoError(t, err)
				result := r.complete(multilock.Result{}, task, time.Now())
				c.schedule.change(func() {
					c.schedule.running--
					c.schedule.budget.regain(task.job)
					h.running--
					r.ended(h, attempt{task.job, result})
				})
			}
		}
		h := hold(0)
		works(h)
		require.NoError(t, r.keep(h))
		require.Equal(t, 1, v.Count("commit"))
		recorded, err := v.Result(t.Context(), joblist.ChunkName(source.Range{From: 1, To: 3}))
		require.NoError(t, err)
		require.Equal(t, 3, recorded.Chunk.Done)

		v.Fail("commit", errors.New("the disk is full"))
		h = hold(1)
		works(h)
		require.ErrorContains(t, r.keep(h), "the disk is full")
		require.Equal(t, counts{open: 9, done: 3}, c.schedule.counts)
		require.Equal(t, counts{}, c.schedule.ended)
		require.ErrorContains(t, c.stops.why(), "the disk is full")
	})
}
