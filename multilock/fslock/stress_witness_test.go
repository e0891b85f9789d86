//go:build linux

package fslock_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/source"
)

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
