package locktest

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// ledger opens the place as one that stores results, and skips the test if it does not.
func (p *place) ledger() source.Ledger {
	p.Helper()
	ledger, ok := p.open().(source.Ledger)
	if !ok {
		p.Skip("the source keeps no results")
	}
	return ledger
}

// ending is a result as a holder would commit it.
func ending(lock *multilock.Lock, attempt, exit int) source.Result {
	record := lock.Record()
	return source.Result{
		Name: record.Name, Token: record.Token, By: record.Holder.Identity, User: "ada", Command: "make all",
		Exit: exit, Why: "because", Output: "the disk was full", Attempt: attempt, Tick: time.Date(2026, 1, 2, 12, 0, 0, 1, time.UTC), Began: time.Date(2026, 1, 2, 11, 59, 58, 987654321, time.UTC),
		Every: "1d@12:00[Europe/Berlin]", Missed: 3, Succeeded: time.Date(2026, 1, 1, 12, 1, 33, 21, time.UTC),
		Start: time.Date(2026, 1, 2, 12, 0, 3, 0, time.UTC), Duration: 90 * time.Second,
	}
}

func (p *place) commit(lock *multilock.Lock, attempt, exit int) source.Result {
	p.Helper()
	result := ending(lock, attempt, exit)
	require.NoError(p, lock.Commit(p.ctx, result))
	return result
}

func (p *place) requireOutcome(lock *multilock.Lock, want source.Result) {
	p.Helper()
	found, err := lock.Outcome(p.ctx)
	require.NoError(p, err)
	require.Equal(p, want, found)
}

func (p *place) requireNoOutcome(lock *multilock.Lock) {
	p.Helper()
	_, err := lock.Outcome(p.ctx)
	require.ErrorIs(p, err, source.ErrNoResult)
}

// eventuallyResult waits until a reader sees a result, because a read may return an older state.
func (p *place) eventuallyResult(src source.Ledger, want source.Result) {
	p.Helper()
	require.Eventually(p, func() bool {
		found, err := src.Result(p.ctx, want.Name)
		if !errors.Is(err, source.ErrNoResult) && err != nil {
			p.Errorf("read the result: %v", err)
		}
		return found == want
	}, watchdog, time.Millisecond)
}

// testCommit: every later holder sees the result that a holder commits, and it stays after the release.
func testCommit(p *place) {
	a, b := p.ledger(), p.ledger()
	_, err := b.Result(p.ctx, "nightly")
	require.ErrorIs(p, err, source.ErrNoResult)
	names, err := b.Results(p.ctx)
	require.NoError(p, err)
	require.Empty(p, names)

	lock := p.try(a, "nightly", multilock.Options{})
	p.requireNoOutcome(lock)
	first := p.commit(lock, 1, 3)
	p.requireOutcome(lock, first)
	require.NoError(p, lock.Verify(p.ctx), "it is held as before")
	second := p.commit(lock, 2, 0)
	p.requireOutcome(lock, second)
	p.release(lock)
	p.requireFree(b, "nightly")

	next := p.try(b, "nightly", multilock.Options{})
	p.requireOutcome(next, second)
	p.eventuallyResult(a, second)
	p.release(next)
}

// testCommitOfAChunk: a chunk's result is stored with its jobs and with names that are not UTF-8.
func testCommitOfAChunk(p *place) {
	a, b := p.ledger(), p.ledger()
	const name = "#jobs-17-80"
	lock := p.try(a, name, multilock.Options{})
	want := ending(lock, 1, 1)
	want.Chunk = &source.Chunk{From: 17, To: 80, Returned: []source.Range{{From: 40, To: 80}}, Fence: 12, Label: "hidden"}
	for n := 17; n < 40; n++ {
		job := source.ChunkJob{Number: n, Name: fmt.Sprintf("na\xffme <%d>", n), Attempt: 2, Exit: n % 2, Start: 1_700_000_000_123, Micros: 456, Duration: 789, Output: "a gap"}
		job.Before = []source.ChunkAttempt{{Exit: 3, Signal: "killed", Why: "because", Host: "node7", Start: 1_700_000_000_000, Micros: 1, Duration: 2}}
		want.Chunk.Jobs = append(want.Chunk.Jobs, job)
	}
	want.Chunk.Count()
	require.NoError(p, lock.Commit(p.ctx, want))
	p.requireOutcome(lock, want)
	p.release(lock)
	lock = p.try(b, name, multilock.Options{})
	p.requireOutcome(lock, want)
	p.release(lock)
	require.Eventually(p, func() bool {
		read, err := a.Result(p.ctx, name)
		return err == nil && reflect.DeepEqual(want, read)
	}, watchdog, time.Millisecond)
}

func testForget(p *place) {
	a, b := p.ledger(), p.ledger()
	lock := p.try(a, "nightly", multilock.Options{})
	require.NoError(p, lock.Forget(p.ctx), "there is nothing to be forgotten")
	p.commit(lock, 1, 0)
	require.NoError(p, lock.Forget(p.ctx))
	p.requireNoOutcome(lock)
	again := p.commit(lock, 1, 0)
	p.release(lock)

	lock = p.try(b, "nightly", multilock.Options{})
	p.requireOutcome(lock, again)
	require.NoError(p, lock.Forget(p.ctx))
	p.release(lock)
	lock = p.try(a, "nightly", multilock.Options{})
	p.requireNoOutcome(lock)
	p.release(lock)
	p.requireFree(a, "nightly")
}

// testCommitAfterABreak: a holder that lost the lock cannot change the result any more.
func testCommitAfterABreak(p *place) {
	a, b := p.ledger(), p.ledger()
	broken := p.lease(a, "nightly", p.claim())
	holder, ok := broken.(source.Committer)
	require.True(p, ok, "a lease of a Ledger is a Committer")
	p.forced(b, "nightly", broken.Record().Token)
	lock := p.try(b, "nightly", multilock.Options{})
	p.requireNoOutcome(lock)
	want := p.commit(lock, 1, 3)

	late := want
	late.Token, late.Exit = broken.Record().Token, 0
	require.ErrorIs(p, holder.Commit(p.ctx, late), source.ErrLost)
	require.ErrorIs(p, holder.Forget(p.ctx), source.ErrLost)
	_, err := holder.Outcome(p.ctx)
	require.ErrorIs(p, err, source.ErrLost)
	p.requireOutcome(lock, want)
	p.release(lock)
}

func testCommitAfterTheRelease(p *place) {
	src := p.ledger()
	lock := p.try(src, "nightly", multilock.Options{})
	p.release(lock)
	require.ErrorIs(p, lock.Commit(p.ctx, ending(lock, 1, 0)), source.ErrReleased)
	require.ErrorIs(p, lock.Forget(p.ctx), source.ErrReleased)
	_, err := lock.Outcome(p.ctx)
	require.ErrorIs(p, err, source.ErrReleased)
	_, err = src.Result(p.ctx, "nightly")
	require.ErrorIs(p, err, source.ErrNoResult)
}

// testResultsOfOddNames: results work with odd names, too.
func testResultsOfOddNames(p *place) {
	src := p.ledger()
	names := p.fixture.odd()
	for i, name := range names {
		lock := p.try(src, name, multilock.Options{})
		p.requireNoOutcome(lock)
		want := p.commit(lock, i+1, 0)
		p.requireOutcome(lock, want)
		p.release(lock)
	}
	reader := p.ledger()
	slices.Sort(names)
	require.Eventually(p, func() bool {
		found, err := reader.Results(p.ctx)
		return err == nil && slices.Equal(names, found)
	}, watchdog, time.Millisecond)
	for _, name := range append([]string{""}, p.fixture.Refused...) {
		_, err := reader.Result(p.ctx, name)
		require.ErrorIs(p, err, source.ErrInvalid, "%q", name)
	}
}

// testOneOfManyRuns has many contenders do repeatedly what a run-once job does: for each name one of them
// runs the job.
func testOneOfManyRuns(p *place) {
	const rivals, jobs = 6, 5
	var mu sync.Mutex
	runs := map[string]int{}
	var group sync.WaitGroup
	for range rivals {
		src := p.ledger()
		group.Go(func() {
			for n := range jobs {
				name := fmt.Sprintf("job%d", n)
				if p.runOnce(src, name) {
					mu.Lock()
					runs[name]++
					mu.Unlock()
				}
			}
		})
	}
	group.Wait()
	require.Len(p, runs, jobs)
	for name, count := range runs {
		require.Equal(p, 1, count, name)
	}
}

func (p *place) runOnce(src source.Ledger, name string) (ran bool) {
	lock, err := multilock.Acquire(p.ctx, src, name, multilock.Options{Poll: 10 * time.Millisecond})
	if err != nil {
		p.Errorf("acquire: %v", err)
		return false
	}
	_, err = lock.Outcome(p.ctx)
	if errors.Is(err, source.ErrNoResult) {
		ran, err = true, lock.Commit(p.ctx, ending(lock, 1, 0))
	}
	if err := errors.Join(err, lock.Release(p.ctx)); err != nil {
		p.Errorf("run once: %v", err)
	}
	return ran
}

// testRevision: every change of a result changes the revision, and nothing else does. Changes within one
// step of a source's clock may go unnoticed.
func testRevision(p *place) {
	reader := p.ledger()
	revision := func() string {
		p.Helper()
		now, err := reader.Revision(p.ctx)
		require.NoError(p, err)
		return now
	}
	src, seen, last := p.ledger(), map[string]bool{}, revision()
	one, two := p.try(src, "one", multilock.Options{}), p.try(src, "two", multilock.Options{})
	require.Equal(p, last, revision())
	for _, change := range []func() error{
		func() error { return one.Commit(p.ctx, ending(one, 1, 1)) },
		func() error { return one.Commit(p.ctx, ending(one, 2, 0)) },
		func() error { return two.Commit(p.ctx, ending(two, 1, 0)) },
		func() error { return one.Forget(p.ctx) },
		func() error { return one.Commit(p.ctx, ending(one, 1, 0)) },
	} {
		seen[last] = true
		p.pause(cmp.Or(p.fixture.Step, DefaultStep))
		require.NoError(p, change())
		last = revision()
		require.False(p, seen[last], "%q was the revision before", last)
		require.Equal(p, last, revision())
	}
	p.release(one)
	p.release(two)
	require.Equal(p, last, revision())
}

// testTimekeeper: all sources of a place have one clock, which advances.
func testTimekeeper(p *place) {
	a, ok := p.open().(source.Timekeeper)
	if !ok {
		p.Skip("the source has no clock")
	}
	b := p.open().(source.Timekeeper)
	first, err := a.Now(p.ctx)
	require.NoError(p, err)
	require.Eventually(p, func() bool {
		now, err := b.Now(p.ctx)
		return err == nil && now.After(first)
	}, watchdog, time.Millisecond)
}
