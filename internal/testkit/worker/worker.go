// Package worker is a process of a stress test: it acquires locks in turn, holds them for a while, draws
// fencing numbers, and writes all that to a history, which locktest.Check judges.
package worker

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/source"
)

// Worker acquires one lock after another.
type Worker struct {
	Source source.Source
	Log    *locktest.Recorder
	Rand   *rand.Rand
	Names  []string // of the locks
	TTL    time.Duration
	Poll   time.Duration // as in multilock.Options

	kept []*multilock.Lock // locks that could not be released
}

// Work acquires locks until over ends. A lock that is not acquired, lost, or not released is an expected
// effect of the injected faults, and is only written to the history. The error is one of writing the
// history.
func (w *Worker) Work(over context.Context) error {
	defer w.giveBack()
	for Pause(over, UpTo(w.Rand, w.TTL/50)) {
		if err := w.turn(over); err != nil {
			return err
		}
	}
	return nil
}

// turn makes one acquisition without a time limit: the check of the history judges the duration.
func (w *Worker) turn(over context.Context) error {
	name, start := w.Names[w.Rand.IntN(len(w.Names))], locktest.Now()
	lock, err := multilock.Acquire(over, w.Source, name, multilock.Options{TTL: w.TTL, Poll: w.Poll})
	if over.Err() != nil && err != nil {
		return nil //nolint:nilerr // the test is over
	}
	if err != nil {
		return w.Log.Record(locktest.Event{Kind: locktest.Unsure, Name: name, Start: start})
	}
	err = w.Log.Note(lock, locktest.Acquired, start)
	if err == nil {
		err = w.inside(lock)
	}
	end := locktest.Releasing
	if errors.Is(err, source.ErrLost) {
		end, err = locktest.Lost, nil
	}
	return errors.Join(err, w.Log.Note(lock, end, 0), w.release(lock))
}

func (w *Worker) inside(lock *multilock.Lock) error {
	if w.Rand.IntN(3) == 0 {
		if err := w.fence(lock); err != nil {
			return err
		}
	}
	until := locktest.Now() + lock.Remaining()
	for end := locktest.Now() + w.stay(); locktest.Now() < end; {
		if !Pause(lock.Context(), w.TTL/40) {
			return source.ErrLost
		}
		next := locktest.Now() + lock.Remaining()
		if next < until+w.TTL/20 {
			continue // not renewed since
		}
		until = next
		if err := w.Log.Note(lock, locktest.Renewed, 0); err != nil {
			return err
		}
	}
	if lock.Remaining() == 0 {
		return source.ErrLost
	}
	return nil
}

// stay returns mostly a short time, and sometimes one so long that the lock must be renewed.
func (w *Worker) stay() time.Duration {
	switch w.Rand.IntN(10) {
	case 0:
		return UpTo(w.Rand, 2*w.TTL)
	case 1, 2, 3:
		return UpTo(w.Rand, w.TTL/2)
	}
	return UpTo(w.Rand, w.TTL/20)
}

// fence draws a number. A failure does not end the turn.
func (w *Worker) fence(lock *multilock.Lock) error {
	record := lock.Record()
	e := locktest.Event{Kind: locktest.Fenced, Name: record.Name, Token: record.Token, Start: locktest.Now()}
	number, err := lock.Fence(context.Background())
	switch {
	case errors.Is(err, source.ErrLost):
		return err
	case err != nil:
		e.Kind = locktest.Unsure
	default:
		e.Fence = number
	}
	return w.Log.Record(e)
}

// release retries until it succeeds, or until other processes may hold the lock. A lock that was not
// released by then is released at the end, because it keeps its directory open.
func (w *Worker) release(lock *multilock.Lock) error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*w.TTL)
	defer cancel()
	for {
		err := lock.Release(ctx)
		switch {
		case err == nil:
			return w.Log.Note(lock, locktest.Released, 0)
		case errors.Is(err, source.ErrLost), errors.Is(err, source.ErrReleased):
			return nil
		}
		if !Pause(ctx, w.TTL/100) {
			w.kept = append(w.kept, lock)
			return w.Log.Note(lock, locktest.Unsure, 0)
		}
	}
}

func (w *Worker) giveBack() {
	for _, lock := range w.kept {
		_ = lock.Release(context.Background()) // the lock may be lost by now
	}
}

// UpTo returns a random duration of at most d.
func UpTo(rng *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(rng.Int64N(int64(d) + 1))
}

// Pause waits, and returns false if ctx has ended.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	return ctx.Err() == nil
}
