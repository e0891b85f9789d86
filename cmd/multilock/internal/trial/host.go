package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock/process"
)

// noResult says why a trial came to no result.
type noResult struct {
	text, advice string
	alone        bool // others may look at another place
}

func (e *noResult) Error() string { return e.text }

// unsafeError shows that locks are not safe here.
type unsafeError struct{ text string }

func (e *unsafeError) Error() string { return e.text }

func unsafef(format string, args ...any) error { return &unsafeError{fmt.Sprintf(format, args...)} }

// host is this host's part in a trial.
type host struct {
	place
	seat   seat
	others others
	turns  turns
	clock  *float64 // see Account

	harm     []string  // what shows that locks are not safe here
	problem  *noResult // why it came to no result
	finished bool
}

func newHost(s Spec, p pace) *host {
	at := place{s, p}
	return &host{place: at, others: others{place: at}, turns: turns{place: at}}
}

// self is who this host is to the others: as the source records it.
func (h *host) self() process.Identity { return h.seat.lock.Record().Holder.Identity }

func (h *host) run(ctx context.Context) error {
	err := h.attend(ctx)
	h.seat.leave()
	if ctx.Err() == nil {
		err = errors.Join(err, h.tidy(ctx))
	}
	if errors.As(err, &h.problem) {
		return nil
	}
	return err
}

// attend takes part from the beginning to the end.
func (h *host) attend(ctx context.Context) (err error) {
	if h.clock, err = h.readClock(ctx); err != nil {
		return err
	}
	if err := h.sitDown(ctx); err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { return h.until(ctx, h.Wait, h.complete, h.look, h.nobody) },
		func() error { return h.until(ctx, h.limit, h.hadEnough, h.play, h.stuck) },
		func() error { return h.mark(ctx, toldMark) },
		func() error { return h.until(ctx, h.limit, h.heardAll, h.play, h.stuck) },
		func() error { h.compare(); return h.mark(ctx, readMark) },
		func() error { return h.until(ctx, h.limit, h.readByAll, h.look, h.stuck) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	h.finished = true
	return nil
}

// until makes steps until it is done, or too late.
func (h *host) until(ctx context.Context, limit time.Duration, done func() bool, step func(context.Context) error, late func() error) error {
	tooLate := errors.New("too late")
	ctx, cancel := context.WithTimeoutCause(ctx, limit, tooLate)
	defer cancel()
	for !done() {
		err := step(ctx)
		if err == nil {
			err = bounded.Sleep(ctx, h.pause)
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

// look finds out who is there, and how far they are.
func (h *host) look(ctx context.Context) error {
	if err := h.seat.lost(); err != nil {
		return h.fellOut(err)
	}
	// A newcomer who finds this host's mark would be too late.
	err := h.others.look(ctx, h.seat.number, len(h.seat.marks) == 0)
	h.Here(len(h.others.active()) + 1)
	return err
}

// play looks at the others, and then tries to have a turn.
func (h *host) play(ctx context.Context) error {
	if err := h.look(ctx); err != nil || time.Now().Before(h.turns.next) {
		return err
	}
	inTheWay, err := h.turns.contend(ctx)
	if err == nil { // an attempt that was cut short says nothing new
		h.others.keptOut(inTheWay)
	}
	return h.noteHarm(err)
}

// noteHarm notes an error which shows that locks are not safe: the trial goes on, so
// that the others learn it.
func (h *host) noteHarm(err error) error {
	var harm *unsafeError
	if errors.As(err, &harm) {
		h.harm = append(h.harm, harm.text)
		return nil
	}
	return err
}

// complete says whether all are there.
func (h *host) complete() bool { return len(h.others.active())+1 >= h.Hosts }

// hadEnough says whether this host knows what it can find out by itself.
func (h *host) hadEnough() bool {
	active := h.others.active()
	if h.harmKnown() || len(active) == 0 {
		return true // the others should know soon, or nobody is left to try it with
	}
	return h.turns.had >= h.pace.turns && !slices.ContainsFunc(active, func(p *peer) bool { return p.Refused == 0 || !p.signs.enough(h.ttl) })
}

// harmKnown says whether anybody has seen that locks are not safe.
func (h *host) harmKnown() bool {
	return len(h.harm) > 0 || slices.ContainsFunc(h.others.peers, func(p *peer) bool { return p.unsafe })
}

func (h *host) heardAll() bool {
	return !slices.ContainsFunc(h.others.active(), func(p *peer) bool { return !p.heard })
}

func (h *host) readByAll() bool {
	return !slices.ContainsFunc(h.others.active(), func(p *peer) bool { return !p.read })
}

// nobody is the error of a host that waited in vain.
func (h *host) nobody() error {
	text := "no other host showed up in " + console.Short(h.Wait)
	if others := h.others.active(); len(others) > 0 {
		var names []string
		for _, p := range others {
			names = append(names, p.name())
		}
		text = fmt.Sprintf("only %d of %d other hosts showed up in %s: %s", len(others), h.Hosts-1, console.Short(h.Wait), strings.Join(names, ", "))
	}
	return &noResult{alone: true, text: text, advice: "does the other one look at the same place? compare what it prints here, the server and export above all; " +
		"run the same line on all hosts within that time (--timeout), with the same -d, -g and --source"}
}

// stuck is the error of a step that did not come to its end.
func (h *host) stuck() error {
	var missing []string
	if h.turns.had < h.pace.turns {
		missing = append(missing, fmt.Sprintf("this host had %d of %d turns", h.turns.had, h.pace.turns))
	}
	for _, p := range h.others.active() {
		switch {
		case p.Refused == 0:
			missing = append(missing, p.name()+" never kept this host out")
		case !p.heard:
			missing = append(missing, p.name()+" did not say that it had its turns")
		case !p.read:
			missing = append(missing, p.name()+" did not read what the others told")
		}
	}
	if h.others.blocker != "" {
		missing = append(missing, fmt.Sprintf("the lock %s is %s", h.Name, h.others.blocker))
	}
	if len(missing) == 0 {
		missing = []string{"the others left, or the source did not answer"}
	}
	return &noResult{
		text:   fmt.Sprintf("the trial did not come to an end in %s: %s", console.Short(h.limit), strings.Join(missing, "; ")),
		advice: "run it again with more time (--timeout 2m); if it stays so, do not lock in this place",
	}
}
