//go:build linux

package soak_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/multilock/go/integration/broken"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/vfs"
)

// shiftVariable makes this binary a worker: its value is the shift, as JSON.
const shiftVariable = "MULTILOCK_SOAK_SHIFT"

// shift is what one worker process is told.
type shift struct {
	Proc   string // its name in the history, never used twice
	Base   string // the shared directory
	Local  string // the register's directory, no part of the lock
	Names  []string
	TTL    time.Duration
	Seed   uint64
	Broken string
}

// Exit codes of a worker.
const (
	exitFailed = 1
	exitDouble = 3
)

type worker struct {
	shift
	src      *fslock.Source
	log      *locktest.Recorder
	register register
	rng      *rand.Rand
}

// workMain works until its standard input ends. Its standard output is the history.
func workMain(text string) int {
	err := work(text)
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, err)
	if errors.Is(err, errDouble) {
		return exitDouble
	}
	return exitFailed
}

func work(text string) error {
	var w worker
	if err := json.Unmarshal([]byte(text), &w.shift); err != nil {
		return err
	}
	system, err := fileSystem(w.Broken)
	if err != nil {
		return err
	}
	if w.src, err = fslock.Open(fslock.Options{Base: w.Base, FS: system}); err != nil {
		return err
	}
	w.log = locktest.NewRecorder(os.Stdout, w.Proc)
	w.register = register{dir: w.Local, proc: w.Proc}
	w.rng = rand.New(rand.NewPCG(w.Seed, 0))
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	for ctx.Err() == nil {
		if err := w.cycle(ctx); err != nil {
			return err
		}
		time.Sleep(w.upTo(w.TTL / 10))
	}
	return nil
}

// fileSystem is the system's own, or a broken variant of it.
func fileSystem(variant string) (vfs.FS, error) {
	if variant == "" {
		return vfs.OS{}, nil
	}
	v, err := broken.Find(variant)
	return v.FS(), err
}

func (w *worker) upTo(d time.Duration) time.Duration { return rand64(w.rng, d) }

func rand64(rng *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(rng.Int64N(int64(d) + 1))
}

// cycle takes a lock, is inside for a while, and releases it. It waits for as long
// as it takes: whether that is too long, the driver judges.
func (w *worker) cycle(ctx context.Context) error {
	h := hold{worker: w, name: w.Names[w.rng.IntN(len(w.Names))]}
	start := locktest.Now()
	lock, err := multilock.Acquire(ctx, w.src, h.name, multilock.Options{TTL: w.TTL})
	if ctx.Err() != nil && err != nil {
		return nil //nolint:nilerr // the end of the worker is the end of its wait
	}
	if err != nil {
		return h.doubt("acquire", start, err)
	}
	h.lock, h.token = lock, lock.Record().Token
	err = w.log.Note(lock, locktest.Acquired, start)
	if err == nil {
		err = h.inside(ctx)
	}
	if err != nil && !errors.Is(err, multilock.ErrLost) && !errors.Is(err, errLate) {
		return err
	}
	return h.release(err)
}
