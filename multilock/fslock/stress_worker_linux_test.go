package fslock_test

import (
	"context"
	"encoding/json"
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

// inside is who says to be inside, and until when at the latest.
type inside struct {
	Worker string
	Until  time.Duration
}

// errMet says that two were inside at once.
var errMet = errors.New("somebody else was inside")

// witness is where workers witness that they are alone: a file in a local
// directory, which has nothing to do with the lock.
type witness struct {
	dir    string
	worker string
	slot   int
}

func (w witness) file() string { return filepath.Join(w.dir, "inside") }

// acting is a file that tells the test, when it stops this process, that it
// stands between the question whether it holds the lock and the touch of the
// witness. Nobody may be stopped there for longer than a tenure: what comes then
// is what every lease allows, and only a fence prevents.
func (w witness) acting() string { return filepath.Join(w.dir, fmt.Sprintf("acting.%d", w.slot)) }

// act touches the witness if enough of the tenure is left.
func (w witness) act(lock *multilock.Lock, touch func(until time.Duration) error) error {
	if err := os.WriteFile(w.acting(), nil, 0o600); err != nil {
		return err
	}
	defer os.Remove(w.acting())
	now, remaining := locktest.Now(), lock.Remaining()
	if remaining < stressMargin {
		return source.ErrLost
	}
	return touch(now + remaining)
}

// enter puts up the witness, with its content, in one step. One that is there
// already convicts, unless its time is up: then it is that of somebody who lost
// the lock and may not touch it any more.
func (w witness) enter(until time.Duration) error {
	err := w.putUp(until)
	if !errors.Is(err, os.ErrExist) {
		return err
	}
	found, err := w.read()
	if err != nil {
		return errors.Join(errMet, err)
	}
	if found.Until >= locktest.Now() {
		return fmt.Errorf("%w: %s", errMet, found.Worker)
	}
	if err := os.Remove(w.file()); err != nil {
		return errors.Join(errMet, err)
	}
	return w.putUp(until)
}

func (w witness) putUp(until time.Duration) error {
	data, err := json.Marshal(inside{Worker: w.worker, Until: until})
	if err != nil {
		return err
	}
	own := filepath.Join(w.dir, "witness."+w.worker)
	if err := os.WriteFile(own, data, 0o600); err != nil {
		return err
	}
	return errors.Join(os.Link(own, w.file()), os.Remove(own))
}

// leave takes the own witness down.
func (w witness) leave(time.Duration) error {
	found, err := w.read()
	if err == nil && found.Worker == w.worker {
		if found.Until < locktest.Now()+stressMargin {
			return source.ErrLost // renewed or not, it had promised to be out by then
		}
		return os.Remove(w.file())
	}
	return errors.Join(errMet, err, errors.New(found.Worker))
}

// outlast waits until the own witness counts for nothing any more. A worker whose
// time ran short has to leave it standing; it must not release the lock before.
func (w witness) outlast() {
	if found, err := w.read(); err == nil && found.Worker == w.worker {
		time.Sleep(found.Until - locktest.Now() + time.Millisecond)
	}
}

// clear takes the witness of a worker down that will not come back.
func (w witness) clear() error {
	found, err := w.read()
	if errors.Is(err, os.ErrNotExist) || (err == nil && found.Worker != w.worker) {
		return nil
	}
	return errors.Join(err, os.Remove(w.file()))
}

func (w witness) read() (found inside, err error) {
	data, err := os.ReadFile(w.file())
	if err != nil {
		return found, err
	}
	return found, json.Unmarshal(data, &found)
}
