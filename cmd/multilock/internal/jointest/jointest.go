// Package jointest tests whether the locks of a source work, and whether they keep hosts
// apart, which no host can find out alone.
//
// Hosts find each other through locks only, so the test works wherever locks do:
//
//	NAME         the contended lock: the hosts hold it in turn
//	NAME-3       held by participant 3 from start to end
//	NAME-3-told  participant 3 has had its turns; the lock's command is its account of them
//	NAME-3-read  participant 3 has read the accounts of all others, and leaves when they have
//
// The names are few and fixed, because some sources keep a little of every name for good.
// All locks have a short TTL, so those of a killed participant expire, and the others
// clear them away.
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

// Spec describes a test, as one host takes part in it.
type Spec struct {
	Locks   multilock.Source
	Name    string          // of the contended lock
	User    string          // recorded as the holder's
	Command string          // recorded as the holder's
	Where   string          // this place, for comparison with another host's
	Hosts   int             // how many are to take part, including this one
	Wait    time.Duration   // for the other hosts
	Here    func(hosts int) // receives the number of participants after each look
}

// ttl frees the locks of a host that was killed.
const ttl = 10 * time.Second

// Alone acquires and releases a lock that no other host wants. Where a release does not
// free a lock, it only inspects one.
func Alone(ctx context.Context, s Spec) source.Finding {
	start := time.Now()
	did, failed := "took a lock and gave it back in %s", "a lock could not be taken and given back: %v"
	try := func() error {
		lock, err := multilock.TryAcquire(ctx, s.Locks, s.Name+"-"+strings.ToLower(rand.Text()), multilock.Options{TTL: ttl, User: s.User, Command: s.Command})
		if err != nil {
			return err
		}
		return lock.Release(ctx)
	}
	if source.Denies(s.Locks, source.TraitPromptRelease) {
		did, failed = "looked at a lock in %s; none was taken, because it would stay so until its time is over", "a lock could not be looked at: %v"
		try = func() error { _, err := multilock.Inspect(ctx, s.Locks, s.Name, multilock.StalePolicy{}); return err }
	}
	err := try()
	if err == nil {
		return source.Fine("trial", fmt.Sprintf(did, time.Since(start).Round(10*time.Microsecond)))
	}
	text := fmt.Sprintf(failed, err)
	if errors.Is(err, multilock.ErrInvalid) {
		return source.Fine("trial", "no lock was tried: "+text)
	}
	return source.Unusable("trial", text, "")
}

const defaultPause = 100 * time.Millisecond

// Together tests the locks with other hosts. A test without a result is a finding; the
// error is context.Cause(ctx) if ctx ended first, or that of a source that failed. This
// host's locks are released in any case.
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
	pause time.Duration // between two looks or attempts
	hold  time.Duration // the shortest turn
	turns int           // the fewest turns of a host
	ttl   time.Duration // of all its locks
}

// host is this host's part in a test.
type host struct {
	Spec
	pace
	Account

	number  int               // of this participant, from 1
	held    []*multilock.Lock // its presence lock, then its marks
	tries   int               // of the contended lock
	next    time.Time         // when it tries again
	parting time.Duration     // the longest release of the contended lock

	peers   []*peer
	blocker string    // who holds the contended lock without taking part, "" if no one does
	listed  []string  // the names that the last look listed
	asked   time.Time // when that look began

	found    []source.Finding // about this host, or about all
	harmed   bool             // one of them proves that locks are not safe
	problem  *noResult        // why the test had no result
	finished bool
}

func newHost(s Spec, p pace) *host {
	return &host{Spec: s, pace: p, Account: Account{Fences: []uint64{}}}
}

// noResult explains why a test had no result.
type noResult struct{ text, advice string }

func (e *noResult) Error() string { return e.text }

var errUnsafe = errors.New("locks are not safe here")

// unsafe records a proof that locks are not safe. The test goes on all the same, so that
// the other hosts learn of it.
func (h *host) unsafe(format string, args ...any) error {
	h.harmed = true
	h.found = append(h.found, source.Unusable("join", "locks are NOT SAFE here: "+fmt.Sprintf(format, args...), "do not lock in this place: two hosts would work at the same time"))
	return errUnsafe
}

func (h *host) run(ctx context.Context) error {
	err := h.takePart(ctx)
	h.finished = err == nil
	h.leave()
	if ctx.Err() == nil {
		err = errors.Join(err, h.tidy(ctx))
	}
	if errors.As(err, &h.problem) {
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
func (h *host) until(ctx context.Context, limit time.Duration, done func() bool, step func(context.Context) error, late func() error) error {
	tooLate := errors.New("too late")
	ctx, cancel := context.WithTimeoutCause(ctx, limit, tooLate)
	defer cancel()
	var err error
	for err == nil && !done() {
		if err = step(ctx); err == nil && !done() {
			err = bounded.Sleep(ctx, h.pause)
		}
	}
	if errors.Is(err, tooLate) {
		return late()
	}
	return err
}

// play looks at the others, and then tries to have a turn.
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

// hadEnough reports whether this host knows all that it can find out by itself.
func (h *host) hadEnough() bool {
	active := h.active()
	return h.harmKnown() || len(active) == 0 || // the others should know soon; or none is left to test with
		h.Turns >= h.turns && !slices.ContainsFunc(active, func(p *peer) bool { return p.Refused == 0 || !p.beatsKnown })
}

// allHave returns whether all others that are here have acquired so many marks.
func (h *host) allHave(marks int) func() bool {
	return func() bool { return !slices.ContainsFunc(h.active(), func(p *peer) bool { return p.marks < marks }) }
}

func (h *host) nobodyCame() error {
	text := "no other host showed up in " + console.Short(h.Wait)
	var names []string
	for _, p := range h.active() {
		names = append(names, p.name())
	}
	if len(names) > 0 {
		text = fmt.Sprintf("only %d of %d other hosts showed up in %s: %s", len(names), h.Hosts-1, console.Short(h.Wait), strings.Join(names, ", "))
	}
	return &noResult{text + "; this host looks at " + h.Where, "does the other one look at the same place? compare what it prints here, the server and export above all; " +
		"run the same line on all hosts within that time (--wait), with the same -d, -g and --source"}
}

func (h *host) stuck() error {
	var missing []string
	if h.Turns < h.turns {
		missing = append(missing, fmt.Sprintf("this host had %d of %d turns", h.Turns, h.turns))
	}
	for _, p := range h.active() {
		if p.Refused == 0 {
			missing = append(missing, p.name()+" never kept this host out")
		} else if p.marks < len(marks) {
			missing = append(missing, p.name()+[]string{" did not report its turns", " did not read what the others reported"}[p.marks])
		}
	}
	if h.blocker != "" {
		missing = append(missing, fmt.Sprintf("the lock %s is %s", h.Name, h.blocker))
	}
	if len(missing) == 0 {
		missing = []string{"the others left, or the source did not answer"}
	}
	return &noResult{fmt.Sprintf("the test did not come to an end in %s: %s", console.Short(h.limit), strings.Join(missing, "; ")),
		"run it again with more time (--wait 2m); if it stays so, do not lock in this place"}
}

// fellOut is the error of a host that lost a lock by its own fault.
func (h *host) fellOut(cause error) error {
	return &noResult{fmt.Sprintf("this host fell out of the test: %v", cause),
		fmt.Sprintf("it was suspended, or cut off from the server, for most of %s, or its lock was broken; run it again on all hosts", h.ttl)}
}
