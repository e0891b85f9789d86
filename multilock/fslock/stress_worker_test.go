//go:build linux

package fslock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/multilock/go/internal/testkit/actor"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/source"
)

// shift is one process's work in the stress test.
type shift struct {
	Slot, Life int // the how-manieth process in which place
	Base       string
	Local      string // the directory of the witness and the logs, which is no part of the lock
	Host       string // the host it plays to be on, "" for the real one
	Seed       uint64
	Cycles     int
}

const (
	stressName = "contested"
	stressTTL  = 1500 * time.Millisecond
	// stressMargin is what must be left of a tenure for the witness to be touched.
	stressMargin = 200 * time.Millisecond
)

func (s shift) String() string { return fmt.Sprintf("%d.%d", s.Slot, s.Life) }

type worker struct {
	shift
	src     *fslock.Source
	log     *locktest.Recorder
	witness witness
	rng     *rand.Rand
}

// playWorker works until its input ends or its cycles are done.
func playWorker() error {
	var w worker
	if err := actor.Part(&w.shift); err != nil {
		return err
	}
	who, err := locktest.SelfOn(w.Host)
	if err != nil {
		return err
	}
	src, err := fslock.Open(fslock.Options{Base: w.Base, Self: who})
	if err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(w.Local, "log."+w.String()))
	if err != nil {
		return err
	}
	w.src, w.log = src, locktest.NewRecorder(file, w.String())
	w.witness = witness{dir: w.Local, worker: w.String(), slot: w.Slot}
	w.rng = rand.New(rand.NewPCG(w.Seed, uint64(w.Slot)))
	over := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(over)
	}()
	return w.work(over)
}

func (w *worker) work(over <-chan struct{}) error {
	for range w.Cycles {
		select {
		case <-over:
			return nil
		default:
		}
		if err := w.cycle(); err != nil {
			return err
		}
	}
	return nil
}

// cycle takes the lock, is inside for a while, and releases it. Not to get the
// lock at all is an error, for it would be stuck.
func (w *worker) cycle() error {
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	lock, err := multilock.Acquire(ctx, w.src, stressName, multilock.Options{TTL: stressTTL, Poll: 50 * time.Millisecond})
	if err != nil {
		return err
	}
	if err := w.log.Note(lock, locktest.Acquired, 0); err != nil {
		return err
	}
	end := locktest.Releasing
	if err = w.inside(ctx, lock); errors.Is(err, source.ErrLost) {
		w.witness.outlast()
		end, err = locktest.Lost, nil
	}
	err = errors.Join(err, w.log.Note(lock, end, 0)) // before the release, which may still succeed
	if released := lock.Release(ctx); !errors.Is(released, source.ErrLost) {
		err = errors.Join(err, released)
	}
	return err
}

// inside is the critical section.
func (w *worker) inside(ctx context.Context, lock *multilock.Lock) error {
	start := locktest.Now()
	number, err := lock.Fence(ctx)
	if err != nil {
		return err
	}
	err = w.log.Record(locktest.Event{
		Kind: locktest.Fenced, Name: stressName, Token: lock.Record().Token, Fence: number, Start: start,
	})
	if err != nil {
		return err
	}
	if err := w.witness.act(lock, w.witness.enter); err != nil {
		return err
	}
	if err := w.linger(lock); err != nil {
		return err
	}
	return w.witness.act(lock, w.witness.leave)
}

// linger stays for some milliseconds, at times for a few heartbeats.
func (w *worker) linger(lock *multilock.Lock) error {
	stay := time.Duration(w.rng.IntN(8)) * time.Millisecond
	if w.rng.IntN(8) == 0 {
		stay = time.Duration(w.rng.IntN(300)) * time.Millisecond
	}
	for end := time.Now().Add(stay); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if lock.Remaining() == 0 {
			return source.ErrLost
		}
		if err := w.log.Note(lock, locktest.Renewed, 0); err != nil {
			return err
		}
	}
	return nil
}
