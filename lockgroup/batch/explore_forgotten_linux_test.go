package batch_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/multilock/go/internal/explore"
	"github.com/multilock/go/internal/explore/locks"
	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

// forgetsThenWorks deletes the results of the list, as "clean --results" does, and works through it.
func forgetsThenWorks(a *explore.Actor) {
	for done := false; !done && !a.Gone(); {
		err := forgetsAll(a)
		if !a.Gate("has forgotten") {
			return
		}
		a.Note("forget: %v", err)
		if done = err == nil; !done {
			a.Sleep(locks.Beat)
		}
	}
	worksThrough(a)
}

// forgetsAll acquires the lock of the chunk, then those of all its parts, drops the progress map, and
// deletes the results, that of the whole chunk last.
func forgetsAll(a *explore.Actor) error {
	src, err := locks.Source(a)
	if err != nil {
		return err
	}
	var held []*multilock.Lock
	defer func() {
		for _, lock := range held {
			_ = lock.Release(context.WithoutCancel(a.Context()))
		}
	}()
	if err := locksNest(a, src, source.Range{From: 1, To: listFactsOf(a.World()).jobs}, &held); err != nil {
		return err
	}
	if err := src.DropProgressMap(a.Context()); err != nil {
		return err
	}
	for _, lock := range slices.Backward(held) {
		listFactsOf(a.World()).forget()
		if err := lock.Forget(a.Context()); err != nil && !errors.Is(err, multilock.ErrNoResult) {
			return err
		}
	}
	return nil
}

func locksNest(a *explore.Actor, src *fslock.Source, chunk source.Range, held *[]*multilock.Lock) error {
	name := joblist.ChunkName(chunk)
	lock, err := multilock.TryOnce(a.Context(), src, name, multilock.Options{TTL: locks.TTL})
	if errors.Is(err, multilock.ErrHeld) {
		_, _ = multilock.Break(a.Context(), src, name, multilock.BreakOptions{}) // if its holder is dead
	}
	if err != nil {
		return err
	}
	*held = append(*held, lock)
	last, err := lock.Outcome(a.Context())
	if errors.Is(err, multilock.ErrNoResult) || err == nil && last.Chunk == nil {
		return nil
	}
	if err != nil {
		return err
	}
	for _, part := range last.Chunk.Returned {
		if err := locksNest(a, src, part, held); err != nil {
			return err
		}
	}
	return nil
}

func (f *listFacts) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forgets = true
}

// One host begins a part, while another deletes the record that gave the part back. If the first one is
// stopped for longer than a TTL, it continues when the other one runs the job, and begins that job
// again.
// Rule: give-back, forget-chunks
func TestExploreListForgotten(t *testing.T) {
	t.Parallel()
	sc := listOf(2, forgetsThenWorks, worksThrough)
	done := source.ChunkJob{Number: 2, Name: "101", Attempt: 1}
	recordedBefore(sc, source.Chunk{From: 1, To: 2, Returned: []source.Range{{From: 1, To: 1}}, Jobs: []source.ChunkJob{done}})
	sc.Pause = locks.TTL + 8730*time.Millisecond
	longerJobs(sc, 2)
	sc.AtEnd = func(w *explore.World) {
		if !w.Actors()[0].Crashed {
			allIsDone(w)
		}
	}
	playedThrough(t, sc, explore.Pause)
}
