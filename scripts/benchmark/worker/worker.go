// Package worker lets one lock be measured from outside: it obeys the commands that the benchmark's driver writes to
// its standard input. The README one directory up describes them; every peer, in whatever language, speaks them alike.
package worker

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Lock is what is measured: one lock of one contender.
type Lock interface {
	// Acquire waits until the lock is held.
	Acquire() error
	// Release gives the lock back; it is only called while the lock is held.
	Release() error
}

// Serve answers the commands read from in with one line of JSON each on out, until in ends. The first line of out is
// unasked and says that the worker is ready. Any error ends the worker: a half-measured lock must not give numbers.
func Serve(lock Lock, in io.Reader, out io.Writer) error {
	replies := json.NewEncoder(out)
	if err := replies.Encode(struct{}{}); err != nil {
		return fmt.Errorf("saying ready: %w", err)
	}
	commands := bufio.NewScanner(in)
	for commands.Scan() {
		reply, err := obey(lock, commands.Text())
		if err != nil {
			return fmt.Errorf("%s: %w", commands.Text(), err)
		}
		if err := replies.Encode(reply); err != nil {
			return fmt.Errorf("replying: %w", err)
		}
	}
	return commands.Err()
}

func obey(lock Lock, command string) (any, error) {
	verb, argument, _ := strings.Cut(command, " ")
	switch verb {
	case "acquire":
		return acquire(lock)
	case "release":
		return release(lock)
	case "cycles":
		return cycles(lock, argument)
	case "count":
		return count(lock, argument)
	}
	return nil, fmt.Errorf("unknown command %q", verb)
}

// moment is a point on CLOCK_MONOTONIC in nanoseconds, the one clock that all processes of a host read alike.
// Go's own monotonic reading cannot be compared between processes.
type moment struct {
	At int64 `json:"at"`
}

func now() moment {
	var at unix.Timespec
	// With a valid clock and a valid address clock_gettime cannot fail: see clock_gettime(2).
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &at)
	return moment{At: at.Nano()}
}

func acquire(lock Lock) (moment, error) {
	err := lock.Acquire()
	return now(), err
}

func release(lock Lock) (moment, error) {
	before := now()
	return before, lock.Release()
}

type rate struct {
	Cycles  int     `json:"cycles"`
	Seconds float64 `json:"seconds"`
}

func cycles(lock Lock, argument string) (rate, error) {
	var seconds float64
	if _, err := fmt.Sscan(argument, &seconds); err != nil {
		return rate{}, err
	}
	start, done := time.Now(), 0
	for time.Since(start).Seconds() < seconds {
		if err := lock.Acquire(); err != nil {
			return rate{}, err
		}
		if err := lock.Release(); err != nil {
			return rate{}, err
		}
		done++
	}
	return rate{Cycles: done, Seconds: time.Since(start).Seconds()}, nil
}
