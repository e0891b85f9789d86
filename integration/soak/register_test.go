//go:build linux

package soak_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/multilock/go/multilock/locktest"
)

// register is the witness: a file for every lock, on a local file system that all
// hosts see, in which whoever holds the lock writes itself down. It knows nothing
// of how locks are taken, and its own order comes from flock(2).
type register struct {
	dir  string
	proc string
}

// entry says who is inside, and until when it believes so if it learns nothing
// more. That moment was computed from the lock's own word, on a clock that all
// processes share.
type entry struct {
	Proc  string        `json:"proc"`
	Token string        `json:"token"`
	Until time.Duration `json:"until"`
}

var (
	// errDouble says that two held a lock at the same time.
	errDouble = errors.New("double holder")
	// errLate says that the time of this holder was up before it had written.
	errLate = errors.New("the tenure ended before the register was reached")
)

// enter writes a new holder down. An earlier one whose time is not up convicts
// them both, unless it was killed meanwhile.
func (r register) enter(name string, own entry) error {
	return r.change(name, func(found entry) (entry, error) {
		now := locktest.Now()
		switch {
		case own.Until <= now:
			return found, errLate
		case now < found.Until && !r.condemned(found.Proc):
			return found, fmt.Errorf("%w of %s: %s came in at %s, while %s was to be there until %s", errDouble, name, own.Proc, now, found.Proc, found.Until)
		}
		return own, nil
	})
}

// extend prolongs what was written: before is what this holder wrote last.
func (r register) extend(name string, before, own entry) error {
	return r.change(name, func(found entry) (entry, error) {
		now := locktest.Now()
		if err := r.stillInside(name, found, before, now); err != nil {
			return found, err
		}
		if own.Until <= now {
			return found, errLate
		}
		return own, nil
	})
}

// leave strikes this holder out; it comes before the release.
func (r register) leave(name string, before entry) error {
	return r.change(name, func(found entry) (entry, error) {
		if err := r.stillInside(name, found, before, locktest.Now()); err != nil {
			return found, err
		}
		return entry{}, nil
	})
}

// stillInside says whether nobody came in before this holder's time was up.
func (r register) stillInside(name string, found, before entry, now time.Duration) error {
	switch {
	case found == before:
		return nil
	case before.Until <= now:
		return errLate
	}
	return fmt.Errorf("%w of %s: %s was to be there until %s, but at %s found %s", errDouble, name, before.Proc, before.Until, now, found.Proc)
}

// entrySize is the size of every entry: one write of it, on one page, is done
// whole or not at all, even by a process that is killed.
const entrySize = 256

// change reads the entry of a lock and writes what f makes of it.
func (r register) change(name string, f func(found entry) (entry, error)) error {
	file, err := os.OpenFile(filepath.Join(r.dir, name+".register"), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := flock(file); err != nil {
		return err
	}
	found, err := readEntry(file)
	if err != nil {
		return err
	}
	next, err := f(found)
	if err != nil {
		return err
	}
	return writeEntry(file, next)
}

// flock waits for the register. Go's runtime interrupts system calls with signals.
func flock(file *os.File) error {
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func readEntry(file *os.File) (entry, error) {
	var e entry
	data := make([]byte, entrySize)
	if n, _ := file.ReadAt(data, 0); n == 0 {
		return e, nil // nobody has ever been there
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return e, fmt.Errorf("%s: %w", file.Name(), err)
	}
	return e, nil
}

func writeEntry(file *os.File, e entry) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if len(text) > entrySize {
		return fmt.Errorf("%s: an entry of %d bytes", file.Name(), len(text))
	}
	_, err = fmt.Fprintf(file, "%-*s", entrySize, text)
	return err
}

// condemn notes that a process is about to be killed: its lock may pass on at
// once, whatever it wrote into the register.
func (r register) condemn(proc string) error {
	return os.WriteFile(r.deathNote(proc), nil, 0o666)
}

func (r register) condemned(proc string) bool {
	_, err := os.Stat(r.deathNote(proc))
	return err == nil
}

func (r register) deathNote(proc string) string { return filepath.Join(r.dir, proc+".dead") }
