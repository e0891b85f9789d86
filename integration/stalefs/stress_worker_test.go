//go:build linux

package stalefs_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/locktest"
)

// worker takes one lock after the other, on one host.
type worker struct {
	*stress
	name string
	src  *fslock.Source
	log  *locktest.Recorder
	rng  *rand.Rand
}

func (s *stress) hire(i int) *worker {
	h := s.cluster.hosts[i%len(s.cluster.hosts)]
	src, err := fslock.Open(fslock.Options{Base: h.on(s.place), FS: s.through, Self: h.identity(s)})
	require.NoError(s, err)
	s.Cleanup(func() { _ = src.Close() })
	name := fmt.Sprintf("%s-%d", h.name, i)
	return &worker{s, name, src, locktest.NewRecorder(s.result, name), s.rng(i)}
}

// work goes on until it is over. Errors are what the faults are for: they must
// not do harm.
func (w *worker) work(over context.Context) {
	for pause(over, upTo(w.rng, stressTTL/50)) {
		w.cycle(over)
	}
}

func (w *worker) cycle(over context.Context) {
	name, start := w.names[w.rng.IntN(len(w.names))], locktest.Now()
	lock, err := multilock.Acquire(over, w.src, name, multilock.Options{TTL: stressTTL, Poll: stressTTL / 20})
	if err != nil {
		w.record(locktest.Event{Kind: locktest.Unsure, Name: name, Start: start})
		return
	}
	t := turn{w, lock, locktest.Event{Name: name, Token: lock.Record().Token}}
	t.believe(locktest.Acquired, start)
	err = t.inside()
	w.result.leave(name, w.name)
	if errors.Is(err, multilock.ErrLost) {
		t.note(locktest.Lost)
	} else {
		t.note(locktest.Releasing)
	}
	t.release()
}

func (w *worker) record(e locktest.Event) { w.result.must(w.log.Record(e)) }

// turn is one acquisition.
type turn struct {
	*worker
	lock  *multilock.Lock
	event locktest.Event
}

func (t turn) note(kind locktest.Kind) {
	e := t.event
	e.Kind = kind
	t.record(e)
}

// believe records for how long the lock is believed in.
func (t turn) believe(kind locktest.Kind, start time.Duration) {
	t.result.must(t.log.Note(t.lock, kind, start))
}

// inside is the critical section.
func (t turn) inside() error {
	if t.rng.IntN(4) == 0 {
		if err := t.fence(); err != nil {
			return err
		}
	}
	stay := upTo(t.rng, stressTTL/50)
	if t.rng.IntN(6) == 0 {
		stay = upTo(t.rng, 2*stressTTL)
	}
	for end := locktest.Now() + stay; ; time.Sleep(5 * time.Millisecond) {
		if err := t.witness(); err != nil || locktest.Now() > end {
			return err
		}
	}
}

// witness tells the witness that this worker is inside.
func (t turn) witness() error {
	now := locktest.Now()
	remaining := t.lock.Remaining()
	if remaining == 0 {
		return multilock.ErrLost
	}
	t.result.enter(t.event.Name, t.name, now+remaining)
	t.believe(locktest.Renewed, 0)
	return nil
}

// fence draws a number. That it could not be drawn does not end the turn.
func (t turn) fence() error {
	e := t.event
	e.Kind, e.Start = locktest.Fenced, locktest.Now()
	number, err := t.lock.Fence(context.Background())
	if err == nil {
		e.Fence = number
		t.record(e)
	}
	if errors.Is(err, multilock.ErrLost) {
		return err
	}
	return nil
}

// release goes on until there is an answer, or for so long that others may have the lock.
// What was not given back by then is when all is over: it keeps its directory open.
func (t turn) release() {
	ctx, cancel := context.WithTimeout(context.Background(), 3*stressTTL)
	defer cancel()
	for {
		err := t.lock.Release(ctx)
		switch {
		case err == nil:
			t.note(locktest.Released)
			return
		case errors.Is(err, multilock.ErrLost), errors.Is(err, multilock.ErrReleased):
			return
		}
		if !pause(ctx, 10*time.Millisecond) {
			t.note(locktest.Unsure)
			t.Cleanup(func() { _ = t.lock.Release(context.Background()) })
			return
		}
	}
}
