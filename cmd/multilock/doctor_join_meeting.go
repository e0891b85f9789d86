package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// meeting is one host's part in "doctor --join". Hosts know of each other by locks
// alone, so it works wherever locks do:
//
//	doctor-join         what all contend for: one turn after the other
//	doctor-join-3       held by the participant with that seat, from the beginning to the end
//	doctor-join-3-told  it has had its turns; the lock's command is what came of them
//	doctor-join-3-read  it has read what all others told, and leaves when they have
//
// The names are few and always the same, because some sources keep a little of every
// name for good. All locks have a short TTL: whoever is killed leaves nothing that
// lasts, and those who stay clear it away.
type meeting struct {
	src   *openedSource
	pace  joinPace
	clock *time.Duration // how far this host's is ahead of the source's, nil if unknown

	seat  *multilock.Lock
	place int               // the seat's number
	marks []*multilock.Lock // told and read
	peers []*peer
	names []string  // what was listed last
	asked time.Time // when that was asked for

	tries   int // at the lock that all contend for
	turns   int
	fences  []uint64 // the numbers of the turns, if the source has such
	sitOut  time.Time
	latest  time.Duration // for the last attempt at the trial lock
	parting time.Duration // the longest for giving it back
	seated  atomic.Int32  // how many are there, this host included

	blocker  string     // who has the lock that all want and takes no part, "" if nobody
	harm     []string   // what shows that locks are not safe here
	strange  []string   // seats of which nobody can tell whose they are
	problem  *joinError // why it came to no result
	finished bool
}

// joinPace is how long things take in a meeting.
type joinPace struct {
	expect int           // hosts, this one included
	wait   time.Duration // for others to come
	limit  time.Duration // for each of the steps after that
	pause  time.Duration // between two looks, or attempts
	hold   time.Duration // the shortest turn
	turns  int           // that each host has at least
	ttl    time.Duration // of all its locks
}

const (
	joinPause = 100 * time.Millisecond
	joinHold  = 300 * time.Millisecond
	joinTurns = 3
	// stepTurns are the turns for which a step may last at least.
	stepTurns = 40
)

// paceOfJoin suits the source: a server that others use, too, is asked less often.
func paceOfJoin(src *openedSource, o *doctorOptions) joinPace {
	p := joinPace{expect: o.expect.Value, wait: o.timeout.Value, pause: joinPause, hold: joinHold, turns: joinTurns, ttl: trialTTL}
	if paced, ok := src.locks.(source.Paced); ok {
		p.pause, p.hold = paced.Pace()
	}
	p.limit = max(p.wait, stepTurns*p.hold)
	return p
}

func newMeeting(src *openedSource, o *doctorOptions) *meeting {
	return &meeting{src: src, pace: paceOfJoin(src, o)}
}

// joinError says why a meeting came to no result.
type joinError struct {
	text, advice string
	alone        bool // others may look at another place
}

func (e *joinError) Error() string { return e.text }

// attendance is for people who wait.
func (m *meeting) attendance() string {
	here := int(m.seated.Load())
	if here >= m.pace.expect {
		return fmt.Sprintf("%d hosts are here, and try out locks between them", here)
	}
	return fmt.Sprintf("waiting for other hosts, for %s: %d of %d are here; run the same line on each", console.Short(m.pace.wait), here, m.pace.expect)
}

// run takes part from the beginning to the end. The error is a *joinError if that
// came to no result, context.Cause(ctx) if that ended first, any other if the source
// failed. Whatever it is, this host's locks are given back.
func (m *meeting) run(ctx context.Context) error {
	err := m.attend(ctx)
	errors.As(err, &m.problem)
	m.leave()
	if ctx.Err() == nil {
		err = errors.Join(err, m.tidy(ctx))
	}
	return err
}

func (m *meeting) attend(ctx context.Context) error {
	if err := m.readClock(ctx); err != nil {
		return err
	}
	if err := m.sitDown(ctx); err != nil {
		return err
	}
	steps := []struct {
		limit time.Duration
		until func() bool
		step  func(context.Context) error
		after func(context.Context) error
		late  func() error
	}{
		{m.pace.wait, m.complete, m.look, nil, m.nobody},
		{m.pace.limit, m.hadEnough, m.play, m.tell, m.stuck},
		{m.pace.limit, m.heardAll, m.play, m.reply, m.stuck},
		{m.pace.limit, m.readByAll, m.look, nil, m.stuck},
	}
	for _, s := range steps {
		if err := m.repeat(ctx, s.limit, s.until, s.step, s.late); err != nil {
			return err
		}
		if s.after == nil {
			continue
		}
		if err := s.after(ctx); err != nil {
			return err
		}
	}
	m.finished = true
	return nil
}

// repeat makes steps until it is done, or too late.
func (m *meeting) repeat(ctx context.Context, limit time.Duration, done func() bool, step func(context.Context) error, late func() error) error {
	tooLate := errors.New("too late")
	ctx, cancel := context.WithTimeoutCause(ctx, limit, tooLate)
	defer cancel()
	for !done() {
		err := step(ctx)
		if err == nil {
			err = rest(ctx, m.pace.pause)
		}
		if errors.Is(err, tooLate) {
			return late()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rest is a pause.
func rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// complete says whether all are there.
func (m *meeting) complete() bool { return len(m.active())+1 >= m.pace.expect }

// hadEnough says whether this host knows what it can find out by itself.
func (m *meeting) hadEnough() bool {
	if m.harmKnown() {
		return true // the others should know soon
	}
	active := m.active()
	if len(active) == 0 {
		return true // nobody is left to try it with
	}
	return m.turns >= m.pace.turns && !slices.ContainsFunc(active, func(p *peer) bool { return p.refused == 0 })
}

// harmKnown says whether anybody has seen that locks are not safe.
func (m *meeting) harmKnown() bool {
	return len(m.harm) > 0 || slices.ContainsFunc(m.peers, (*peer).saidHarm)
}

func (m *meeting) heardAll() bool {
	return !slices.ContainsFunc(m.active(), func(p *peer) bool { return p.account == nil })
}

func (m *meeting) readByAll() bool {
	return !slices.ContainsFunc(m.active(), func(p *peer) bool { return !p.read })
}

// nobody is the error of a host that waited in vain.
func (m *meeting) nobody() error {
	e := &joinError{alone: true, text: "no other host showed up in " + console.Short(m.pace.wait)}
	if others := m.active(); len(others) > 0 {
		var names []string
		for _, p := range others {
			names = append(names, p.name())
		}
		e.text = fmt.Sprintf("only %d of %d other hosts showed up in %s: %s", len(others), m.pace.expect-1, console.Short(m.pace.wait), strings.Join(names, ", "))
	}
	e.advice = "does the other one look at the same place? compare what it prints here, the server and export above all; " +
		"run the same line on all hosts within that time (--timeout), with the same -d, -g and --source"
	return e
}

// stuck is the error of a step that did not come to its end.
func (m *meeting) stuck() error {
	var missing []string
	if m.turns < m.pace.turns {
		missing = append(missing, fmt.Sprintf("this host had %d of %d turns", m.turns, m.pace.turns))
	}
	for _, p := range m.active() {
		switch {
		case p.refused == 0:
			missing = append(missing, p.name()+" never kept this host out")
		case p.account == nil:
			missing = append(missing, p.name()+" did not say that it had its turns")
		case !p.read:
			missing = append(missing, p.name()+" did not read what the others told")
		}
	}
	if m.blocker != "" {
		missing = append(missing, fmt.Sprintf("the lock %s is %s", joinName, m.blocker))
	}
	if len(missing) == 0 {
		missing = []string{"the others left, or the source did not answer"}
	}
	return &joinError{
		text:   fmt.Sprintf("the trial did not come to an end in %s: %s", console.Short(m.pace.limit), strings.Join(missing, "; ")),
		advice: "run it again with more time (--timeout 2m); if it stays so, do not lock in this place",
	}
}

// play looks at the others, and then tries to have a turn.
func (m *meeting) play(ctx context.Context) error {
	if err := m.look(ctx); err != nil || time.Now().Before(m.sitOut) {
		return err
	}
	return m.contend(ctx)
}

func (m *meeting) options(command string) multilock.Options {
	return multilock.Options{TTL: m.pace.ttl, User: m.src.opt.user, Command: command}
}

// readClock compares this host's clock with the source's, if it has one.
func (m *meeting) readClock(ctx context.Context) error {
	keeper, ok := extra[source.Timekeeper](m.src, source.TraitOneClock)
	if !ok {
		return nil
	}
	before := time.Now()
	now, err := answered(ctx, func() (time.Time, error) { return keeper.Now(ctx) })
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err == nil {
		ahead := before.Add(time.Since(before) / 2).Sub(now).Round(time.Millisecond)
		m.clock = &ahead
	}
	return nil // a clock that cannot be read was a finding before
}

// self is who this host is to the others: as the source records it.
func (m *meeting) self() process.Identity { return m.seat.Record().Holder.Identity }
