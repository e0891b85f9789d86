package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/multilock/go/multilock"
)

// contend makes one attempt at the lock that all want. If that succeeds it is this
// host's turn.
func (m *meeting) contend(ctx context.Context) error {
	start := time.Now()
	lock, err := multilock.TryAcquire(ctx, m.src.locks, joinName, m.options(joinCommand))
	m.tries++
	m.latest = time.Since(start)
	var held *multilock.HeldError
	switch {
	case errors.As(err, &held):
		m.keptOut(held.Sighting)
		return nil
	case err != nil:
		return err
	}
	err = m.turn(ctx, lock)
	m.sitOut = time.Now().Add(m.turnLength())
	return err
}

// keptOut counts whose lock was in the way. It counts only if the holder is known
// for a participant that lives.
func (m *meeting) keptOut(seen multilock.Sighting) {
	m.blocker = heldBy(seen)
	for _, p := range m.peers {
		if seen.State == multilock.StateHeld && p.holder.Identity == seen.Record.Holder.Identity {
			p.refused++
			m.blocker = ""
		}
	}
}

// turnLength is time enough for all others to find the lock held, also where an
// attempt takes long.
func (m *meeting) turnLength() time.Duration {
	return max(m.pace.hold, min(3*m.latest, m.pace.ttl/3))
}

// turn holds the lock for a while, and verifies that it is nobody else's.
func (m *meeting) turn(ctx context.Context, lock *multilock.Lock) error {
	number, err := m.underLock(ctx, lock)
	start := time.Now()
	released := giveBack(lock)
	m.parting = max(m.parting, time.Since(start))
	if lost := (*multilock.LostError)(nil); errors.As(errors.Join(err, released), &lost) {
		return m.lostTurn(lost)
	}
	if err = errors.Join(err, released); err != nil {
		return err
	}
	m.turns, m.blocker = m.turns+1, ""
	if number == 0 {
		return nil
	}
	if len(m.fences) > 0 && number <= m.fences[len(m.fences)-1] {
		m.harmed("the fencing numbers of this host's turns do not grow: %d came after %d", number, m.fences[len(m.fences)-1])
	}
	m.fences = append(m.fences, number)
	return nil
}

// underLock is a turn. The number is 0 if the source has none.
func (m *meeting) underLock(ctx context.Context, lock *multilock.Lock) (number uint64, err error) {
	number, err = lock.Fence(ctx)
	if err != nil && !errors.Is(err, multilock.ErrUnsupported) {
		return 0, err
	}
	if mine, err := m.isMine(ctx, lock); err != nil || !mine {
		return 0, err
	}
	if err := rest(ctx, m.turnLength()); err != nil {
		return 0, err
	}
	_, err = m.isMine(ctx, lock)
	return number, err
}

// lostTurn tells a lock that was taken away from one that this host was too slow for.
func (m *meeting) lostTurn(lost *multilock.LostError) error {
	if m.wasSilent(lost) {
		return m.tooSlow(lost)
	}
	m.harmed("the lock was taken away from this host while it held it, unless somebody broke it by force: %v", lost)
	return nil
}

// wasSilent says whether a lock was lost because this host gave no sign of life:
// then others may have it.
func (m *meeting) wasSilent(lost *multilock.LostError) bool {
	return lost.Err == nil || lost.Silence >= m.pace.ttl-m.pace.ttl/5
}

// tooSlow is the error of a host that lost a lock by its own fault.
func (m *meeting) tooSlow(cause error) error {
	return &joinError{
		text:   fmt.Sprintf("this host fell out of the trial: %v", cause),
		advice: fmt.Sprintf("it was suspended, or cut off from the server, for most of %s, or somebody broke its lock; run it again on all hosts", m.pace.ttl),
	}
}
