package mongo_test

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
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/mongolock"
)

// shift is one process's work in the stress test.
type shift struct {
	Slot, Life int    // the how-manieth process in which place
	URL        string // of the locks
	Dir        string // of the logs
	Host       string // the host it plays to be on, "" for the real one
	Cycles     int
}

const (
	stressName = "contested"
	stressTTL  = 2 * time.Second
)

func (s shift) String() string { return fmt.Sprintf("%d.%d", s.Slot, s.Life) }

// log is the file of a worker's events.
func (s shift) log() string { return filepath.Join(s.Dir, "log."+s.String()) }

type worker struct {
	shift
	src *mongolock.Source
	log *locktest.Recorder
}

// playWorker works until its cycles are done, or its input ends with its parent.
func playWorker() error {
	var w worker
	if err := actor.Part(&w.shift); err != nil {
		return err
	}
	who, err := locktest.SelfOn(w.Host)
	if err != nil {
		return err
	}
	w.src, err = mongolock.Open(mongolock.Options{
		Place: mongolock.Place{URL: w.URL, Timeout: stressTTL, BehindSerialisingProxy: true}, Self: who,
	})
	if err != nil {
		return err
	}
	file, err := os.Create(w.shift.log())
	if err != nil {
		return err
	}
	w.log = locktest.NewRecorder(file, w.String())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	for done := 0; done < w.Cycles; {
		held, err := w.cycle()
		if err != nil {
			return err
		}
		if held {
			done++
		}
	}
	return w.src.Close()
}

// cycle takes the lock, is inside for a while, and releases it. An attempt may fail
// because the network does; then nobody believes in anything. Not to get the lock
// for so long that its holder must be dead several times over is an error: it would
// be stuck.
func (w *worker) cycle() (held bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	start := locktest.Now()
	lock, err := multilock.Acquire(ctx, w.src, stressName, multilock.Options{TTL: stressTTL, Poll: 100 * time.Millisecond})
	if err != nil {
		if ctx.Err() != nil {
			return false, fmt.Errorf("the lock is stuck: %w", err)
		}
		return false, w.log.Record(locktest.Event{Kind: locktest.Unsure, Name: stressName})
	}
	if err := w.log.Note(lock, locktest.Acquired, start); err != nil {
		return false, err
	}
	ending := locktest.Releasing
	if err := w.inside(ctx, lock); errors.Is(err, multilock.ErrLost) {
		ending = locktest.Lost
	} else if err != nil {
		return false, err
	}
	if err := w.log.Note(lock, ending, 0); err != nil {
		return false, err
	}
	if lock.Release(ctx) == nil && ending == locktest.Releasing {
		err = w.log.Note(lock, locktest.Released, 0)
	}
	return true, err
}

// inside draws a number and stays for some milliseconds, at times for some heartbeats.
func (w *worker) inside(ctx context.Context, lock *multilock.Lock) error {
	start := locktest.Now()
	number, err := lock.Fence(ctx)
	if errors.Is(err, multilock.ErrLost) {
		return err
	}
	if err == nil {
		e := locktest.Event{Kind: locktest.Fenced, Name: stressName, Token: lock.Record().Token, Fence: number, Start: start}
		if err := w.log.Record(e); err != nil {
			return err
		}
	}
	stay := time.Duration(rand.IntN(4)) * time.Millisecond
	if rand.IntN(20) == 0 {
		stay = time.Duration(rand.IntN(600)) * time.Millisecond
	}
	for end := time.Now().Add(stay); time.Now().Before(end); {
		select {
		case <-lock.Context().Done():
			return context.Cause(lock.Context())
		case <-time.After(eyeblink):
		}
		if err := w.log.Note(lock, locktest.Renewed, 0); err != nil {
			return err
		}
	}
	return nil
}
