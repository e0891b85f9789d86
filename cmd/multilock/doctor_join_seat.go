package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"sync"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/multilock"
)

// The names of the locks, see meeting.
const (
	joinName = "doctor-join"
	toldMark = "told"
	readMark = "read"
	maxSeats = 1000
)

func seatName(seat int) string { return joinName + "-" + strconv.Itoa(seat) }

func markName(seat int, mark string) string { return seatName(seat) + "-" + mark }

// cutSeat takes the name of a seat, or of a mark of its holder's, apart; mark is ""
// for the seat itself.
func cutSeat(name string) (seat int, mark string, ok bool) {
	rest, ok := strings.CutPrefix(name, joinName+"-")
	if !ok {
		return 0, "", false
	}
	digits, mark, marked := strings.Cut(rest, "-")
	seat, err := strconv.Atoi(digits)
	if err != nil || strconv.Itoa(seat) != digits || seat < 1 || seat > maxSeats || (marked && mark != toldMark && mark != readMark) {
		return 0, "", false
	}
	return seat, mark, true
}

// sitDown takes the first free seat. One that is granted though another has it is
// the worst that there can be; the others can only be told of it from a real seat.
func (m *meeting) sitDown(ctx context.Context) error {
	for seat := 1; seat <= maxSeats; seat++ {
		lock, err := multilock.TryAcquire(ctx, m.src.locks, seatName(seat), m.options(joinCommand))
		if errors.Is(err, multilock.ErrHeld) || (errors.Is(err, fs.ErrPermission) && m.isTaken(ctx, seat)) {
			continue
		}
		if err != nil {
			return err
		}
		mine, err := m.isMine(ctx, lock)
		if mine {
			m.seat, m.place = lock, seat
			m.seated.Store(1)
			return nil
		}
		_ = giveBack(lock)
		if err != nil {
			return err
		}
	}
	return &joinError{
		text:   fmt.Sprintf("all %d seats are taken: so many locks named %s-NUMBER are held", maxSeats, joinName),
		advice: "see who holds them: multilock status",
	}
}

// isTaken says whether there is anything in a seat: that of another user who died may
// not be cleared away.
func (m *meeting) isTaken(ctx context.Context, seat int) bool {
	seen, err := multilock.Inspect(ctx, m.src.locks, seatName(seat), multilock.Patience{})
	return err == nil && seen.State != multilock.StateFree
}

// isMine looks whether the source shows a lock of this host's as such, and notes it
// if that is not so. A look may be a cache's memory, so there are several.
func (m *meeting) isMine(ctx context.Context, lock *multilock.Lock) (bool, error) {
	const looks = 3
	var seen multilock.Sighting
	for n := range looks {
		if n > 0 {
			if err := rest(ctx, m.pace.pause); err != nil {
				return false, err
			}
		}
		var err error
		if seen, err = multilock.Inspect(ctx, m.src.locks, lock.Record().Name, multilock.Patience{}); err != nil {
			return false, err
		}
		if seen.State != multilock.StateFree && seen.Record.Token == lock.Record().Token {
			return true, nil
		}
	}
	if lock.Remaining() == 0 {
		return false, m.tooSlow(lock.Verify(ctx)) // while this host slept it was anybody's
	}
	whose := "free"
	if seen.State != multilock.StateFree {
		whose = "held by " + seen.Record.Holder.String()
	}
	m.harmed("this host was given the lock %q, and all the same it was %s", lock.Record().Name, whose)
	return false, nil
}

func (m *meeting) harmed(format string, args ...any) {
	m.harm = append(m.harm, fmt.Sprintf(format, args...))
}

// seatLost is the error of a host that was away for so long that it lost its seat.
func (m *meeting) seatLost() error {
	if m.seat.Context().Err() == nil {
		return nil
	}
	return m.tooSlow(context.Cause(m.seat.Context()))
}

// mark takes one more lock, which tells the others how far this host is. One that
// an earlier participant has left is waited for.
func (m *meeting) mark(ctx context.Context, mark, command string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, m.pace.limit, console.ErrWaitOver)
	defer cancel()
	lock, err := multilock.Acquire(ctx, m.src.locks, markName(m.place, mark), m.options(command))
	if err == nil {
		m.marks = append(m.marks, lock)
	}
	return err
}

// goodbye is for how long this host tries to give a lock back: then its TTL is over,
// too. A v3 client of a busy NFS server with v4 clients has needed more than five seconds.
const goodbye = trialTTL

// leave gives back what this host holds, also after Ctrl-C, all of it at once.
func (m *meeting) leave() {
	var all sync.WaitGroup
	for _, lock := range append(m.marks, m.seat) {
		if lock != nil {
			all.Go(func() { _ = giveBack(lock) }) // what fails is free when its TTL is over
		}
	}
	all.Wait()
}

// giveBack frees a lock, also if the meeting was interrupted.
func giveBack(lock *multilock.Lock) error {
	ctx, cancel := context.WithTimeout(context.Background(), goodbye)
	defer cancel()
	return lock.Release(ctx)
}
