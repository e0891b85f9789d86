// Package jointest tests whether the locks of a source work, and whether they exclude other hosts, which no
// host can find out alone.
//
// Hosts find each other only through locks, so the test works wherever locks do:
//
//	NAME              the contended lock: the hosts hold it in turn
//	NAME#slot-3       held by participant 3 from start to end
//	NAME-told#slot-3  participant 3 has had its turns; the lock's command is its account of them
//	NAME-read#slot-3  participant 3 has read the accounts of all others, and leaves when they have, too
//
// The names are few and fixed, because some sources keep a little data about every name permanently. All
// locks have a short TTL, so the locks of a killed participant expire, and the others remove them.
package jointest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// Spec describes a test to a participating host.
type Spec struct {
	Locks   multilock.Source
	Name    string          // of the contended lock
	User    string          // recorded as the holder's
	Command string          // recorded as the holder's
	Hosts   int             // how many are to take part, including this one
	Wait    time.Duration   // for the other hosts
	Here    func(hosts int) // receives the number of participants after each observation
}

// ttl is the TTL of all locks, after which a killed host's locks are free.
const ttl = 10 * time.Second

// Alone acquires and releases a lock that no other host wants. If a release does not free locks, Alone only
// inspects a lock.
func Alone(ctx context.Context, s Spec) source.Finding {
	var err error
	did, start := "acquired and released a lock in %s", time.Now()
	if source.Denies(s.Locks, source.TraitPromptRelease) {
		did = "inspected a lock in %s; none was acquired, because it would stay held for its whole period"
		_, err = multilock.Inspect(ctx, s.Locks, s.Name, multilock.StalePolicy{})
	} else {
		err = multilock.Do(ctx, s.Locks, s.Name+"-"+strings.ToLower(rand.Text()), multilock.Options{TTL: ttl, User: s.User, Command: s.Command},
			func(context.Context) error { return nil })
	}
	switch {
	case err == nil:
		return source.Fine("trial", fmt.Sprintf(did, time.Since(start).Round(10*time.Microsecond)))
	case errors.Is(err, multilock.ErrInvalid):
		return source.Fine("trial", "no lock was tested: "+err.Error())
	}
	return source.Unusable("trial", err.Error(), "")
}

const defaultPause = 100 * time.Millisecond

// Together tests the locks with other hosts. An inconclusive test is a finding. The error is
// context.Cause(ctx) if ctx ended first, or the error of a failed source. This host's locks are released in
// any case.
func Together(ctx context.Context, s Spec) (Report, error) {
	p := pace{pause: defaultPause, hold: 300 * time.Millisecond, turns: 3, ttl: ttl}
	if paced, ok := s.Locks.(source.Paced); ok { // a server that others use, too, gets fewer requests
		p.pause, p.hold = paced.Pace()
	}
	p.limit = max(s.Wait, 40*p.hold)
	h := newHost(s, p)
	err := h.run(ctx)
	return h.report(), err
}

// pace has the times of a test.
type pace struct {
	limit time.Duration // of each step after the wait for other hosts
	pause time.Duration // between two observations or attempts
	hold  time.Duration // the shortest turn
	turns int           // the minimum number of turns of a host
	ttl   time.Duration // of all its locks
}

// host is this host's side of a test.
type host struct {
	Spec
	pace
	Account

	number  int               // of this participant, from 1
	held    []*multilock.Lock // its presence lock, followed by its marks
	tries   int               // of the contended lock
	next    time.Time         // time of the next attempt
	parting time.Duration     // the slowest release of the contended lock

	peers  []*peer
	listed []string  // the names in the last list
	asked  time.Time // when that list was requested

	found  []source.Finding // about this host, or about all
	harmed bool             // one of them proves that locks are not safe
	open   bool             // one of them explains why the test was inconclusive
}

func newHost(s Spec, p pace) *host {
	return &host{Spec: s, pace: p, Account: Account{Fences: []uint64{}}}
}

var (
	errUnsafe = errors.New("locks are not safe here")
	errOpen   = errors.New("the test had no result")
)

// unsafe records a proof that locks are not safe. The test continues, so that the other hosts learn of it.
func (h *host) unsafe(format string, args ...any) error {
	h.harmed = true
	h.found = append(h.found, source.Unusable("join", fmt.Sprintf(format, args...), "use another filesystem or server: here two hosts would work at the same time"))
	return errUnsafe
}

// leftOpen records why the test is inconclusive.
func (h *host) leftOpen(text, advice string) error {
	h.open = true
	h.found = append(h.found, source.Unusable("join", text, advice))
	return errOpen
}

func (h *host) run(ctx context.Context) error {
	err := h.takePart(ctx)
	h.leave()
	h.conclude(err == nil)
	if ctx.Err() == nil {
		err = errors.Join(err, h.tidy(ctx))
	}
	if errors.Is(err, errOpen) { // a finding has the reason
		return nil
	}
	return err
}

func (h *host) takePart(ctx context.Context) error {
	for _, step := range []func() error{
		func() error { return h.measureClock(ctx) },
		func() error { return h.join(ctx) },
		func() error { return h.until(ctx, h.Wait, h.allCame, h.look, h.nobodyCame) },
		func() error { return h.until(ctx, h.limit, h.hadEnough, h.play, h.stuck) },
		func() error { return h.mark(ctx, markTold) },
		func() error { return h.until(ctx, h.limit, h.allHave(1), h.play, h.stuck) },
		func() error { h.compareFences(); return h.mark(ctx, markRead) },
		func() error { return h.until(ctx, h.limit, h.allHave(2), h.look, h.stuck) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// until repeats step until done, or returns the error of late.
func (h *host) until(ctx context.Context, limit time.Duration, done func() bool, step func(context.Context) error, late func(context.Context) error) error {
	tooLate := errors.New("too late")
	limited, cancel := context.WithTimeoutCause(ctx, limit, tooLate)
	defer cancel()
	var err error
	for err == nil && !done() {
		if err = step(limited); err == nil && !done() {
			err = bounded.Sleep(limited, h.pause)
		}
	}
	if errors.Is(err, tooLate) {
		return late(ctx)
	}
	return err
}

// play observes the peers, and then tries to have a turn.
func (h *host) play(ctx context.Context) error {
	err := h.look(ctx)
	if err == nil && !time.Now().Before(h.next) {
		err = h.contend(ctx)
	}
	if errors.Is(err, errUnsafe) {
		return nil
	}
	return err
}

// harmKnown reports whether any participant has seen that locks are not safe.
func (h *host) harmKnown() bool {
	return h.harmed || slices.ContainsFunc(h.peers, func(p *peer) bool { return p.unsafe })
}

func (h *host) allCame() bool { return len(h.active())+1 >= h.Hosts }

// hadEnough reports whether this host has found out all that it can by itself.
func (h *host) hadEnough() bool {
	active := h.active()
	return h.harmKnown() || len(active) == 0 || // the peers should learn of harm soon
		h.Turns >= h.turns && !slices.ContainsFunc(active, func(p *peer) bool { return p.Refused == 0 || !p.beatsKnown })
}

// allHave returns whether all active peers have acquired that many marks.
func (h *host) allHave(marks int) func() bool {
	return func() bool { return !slices.ContainsFunc(h.active(), func(p *peer) bool { return p.marks < marks }) }
}

func (h *host) nobodyCame(context.Context) error {
	text, came := "no other host joined within "+console.Short(h.Wait), ""
	for i, p := range h.active() {
		came += ", " + p.name()
		text = fmt.Sprintf("only %d of %d other hosts joined within %s: %s", i+1, h.Hosts-1, console.Short(h.Wait), came[2:])
	}
	return h.leftOpen(text, "run the same command on all hosts within that time (--wait), with the same -d, -g and --source; if you did, compare "+
		"the reports of the hosts: another server, export or inode is another directory")
}

func (h *host) stuck(ctx context.Context) error {
	text := fmt.Sprintf("the test did not finish within %s: this host had %d of %d turns", console.Short(h.limit), h.Turns, h.turns)
	for _, p := range h.active() {
		text += fmt.Sprintf("; %s excluded it %d times, and took %d of %d steps", p.name(), p.Refused, p.marks, len(marks))
	}
	if seen, err := h.inspect(ctx, h.Name); err == nil && seen.State == multilock.StateHeld {
		text += fmt.Sprintf("; the lock %s is %s", h.Name, console.HeldBy(seen))
	}
	return h.leftOpen(text, "run it again with more time (--wait 2m); if the result is the same, do not use locks here")
}

// fellOut returns the error of a host that lost a lock through its own fault.
func (h *host) fellOut(cause error) error {
	return h.leftOpen(fmt.Sprintf("this host dropped out of the test: %v", cause),
		fmt.Sprintf("run it again on all hosts: this one was suspended or cut off from the server for most of %s, or its lock was broken", h.ttl))
}
