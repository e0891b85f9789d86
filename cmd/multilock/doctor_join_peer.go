package main

import (
	"context"
	"slices"
	"time"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// peer is another participant, as this host sees it.
type peer struct {
	seat   int
	token  string // of its seat: that very participant, and nobody who sits there later
	holder multilock.Holder

	refused int // how often its lock kept this host out
	stale   time.Duration
	account *account // what it told, nil before that
	read    bool     // it has read what all others told
	left    bool     // it gave its seat back
	away    string   // why it counts as gone without a word, "" if it does not
	looked  time.Time
}

func (p *peer) isActive() bool { return !p.left && p.away == "" }

func (p *peer) saidHarm() bool { return p.account != nil && p.account.Harm }

// active are the participants that are there.
func (m *meeting) active() []*peer {
	return slices.DeleteFunc(slices.Clone(m.peers), func(p *peer) bool { return !p.isActive() })
}

// lookAfter is the time between two looks at whether a participant lives. Each look
// costs several requests, and a list of all of them only one.
const lookAfter = time.Second

// look finds out who is there, and how far they are.
func (m *meeting) look(ctx context.Context) error {
	if err := m.seatLost(); err != nil {
		return err
	}
	asked := time.Now()
	names, err := answered(ctx, func() ([]string, error) { return m.src.locks.Names(ctx) })
	if err != nil {
		return err
	}
	for _, p := range m.active() {
		if err := m.follow(ctx, p, names); err != nil {
			return err
		}
	}
	if len(m.marks) == 0 { // later it is too late for a newcomer
		err = m.meet(ctx, names)
	}
	m.names, m.asked = names, asked
	m.seated.Store(int32(len(m.active()) + 1)) //nolint:gosec // at most maxSeats
	return err
}

// meet gets to know those who have just come.
func (m *meeting) meet(ctx context.Context, names []string) error {
	for _, name := range names {
		seat, mark, ok := cutSeat(name)
		if !ok || mark != "" || seat == m.place || slices.ContainsFunc(m.active(), func(p *peer) bool { return p.seat == seat }) {
			continue
		}
		p := &peer{seat: seat, looked: time.Now()}
		seen, err := m.inspect(ctx, p, name)
		if err != nil {
			return err
		}
		switch {
		case seen.State != multilock.StateHeld:
			continue // it died or left; what it leaves is cleared away in the end
		case seen.Record.Foreign != "" || seen.Record.Token == "":
			m.meetStranger(name, seen)
			continue
		}
		p.token, p.holder = seen.Record.Token, seen.Record.Holder
		if known := slices.ContainsFunc(m.peers, func(q *peer) bool { return q.token == p.token }); known {
			continue
		}
		told, err := m.hasMark(ctx, p, names, toldMark)
		if err != nil {
			return err
		}
		if told == nil { // else it is about to end, with others
			m.peers = append(m.peers, p)
		}
	}
	return nil
}

func (m *meeting) meetStranger(name string, seen multilock.Sighting) {
	text := name + ": " + seen.Why
	if !slices.Contains(m.strange, text) {
		m.strange = append(m.strange, text)
	}
}

// follow notices what has become of a participant.
func (m *meeting) follow(ctx context.Context, p *peer, names []string) error {
	if err := m.checkLife(ctx, p, slices.Contains(names, seatName(p.seat))); err != nil || !p.isActive() {
		return err
	}
	if p.account == nil {
		told, err := m.hasMark(ctx, p, names, toldMark)
		if told == nil || err != nil {
			return err
		}
		p.account = parseAccount(told.Record.Holder.Command)
	}
	read, err := m.hasMark(ctx, p, names, readMark)
	if read != nil {
		p.read = true
		p.account.Harm = p.account.Harm || parseAccount(read.Record.Holder.Command).Harm
	}
	return err
}

// checkLife looks at the seat of a participant now and then, and when it is not
// listed any more.
func (m *meeting) checkLife(ctx context.Context, p *peer, listed bool) error {
	if listed && time.Since(p.looked) < lookAfter {
		return nil
	}
	p.looked = time.Now()
	seen, err := m.inspect(ctx, p, seatName(p.seat))
	switch {
	case err != nil:
		return err
	case seen.State == multilock.StateFree || seen.Record.Token != p.token:
		p.left = true
	case seen.State != multilock.StateHeld:
		p.away = seen.Why
	}
	return nil
}

// hasMark is a look at a mark of a participant's; nil if it has not made that yet.
// An earlier one of the same seat may have died and left its own.
func (m *meeting) hasMark(ctx context.Context, p *peer, names []string, mark string) (*multilock.Sighting, error) {
	name := markName(p.seat, mark)
	if !slices.Contains(names, name) {
		return nil, nil
	}
	seen, err := m.inspect(ctx, p, name)
	if err != nil || seen.State != multilock.StateHeld || seen.Record.Holder.Identity != p.holder.Identity {
		return nil, err
	}
	return &seen, nil
}

// inspect looks at a lock of a participant's. The first time it also tells how old
// the list was in which that was still missing: that is a cache's doing.
func (m *meeting) inspect(ctx context.Context, p *peer, name string) (multilock.Sighting, error) {
	seen, err := multilock.Inspect(ctx, m.src.locks, name, multilock.Patience{})
	if err == nil && seen.State == multilock.StateHeld && seen.Age != source.Unknown && !m.asked.IsZero() && !slices.Contains(m.names, name) {
		p.stale = max(p.stale, seen.Age-time.Since(m.asked))
	}
	return seen, err
}
