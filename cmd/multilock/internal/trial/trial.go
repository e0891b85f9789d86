// Package trial tries whether the locks of a place work, and whether they keep hosts
// apart, which none of these can find out alone.
//
// Hosts know of each other by locks alone, so it works wherever locks do:
//
//	NAME         what all contend for: one turn after the other
//	NAME-3       held by the participant with that seat, from the beginning to the end
//	NAME-3-told  it has had its turns; the lock's command is what came of them
//	NAME-3-read  it has read what all others told, and leaves when they have
//
// The names are few and always the same, because some sources keep a little of every
// name for good. All locks have a short TTL: whoever is killed leaves nothing that
// lasts, and those who stay clear it away.
package trial

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// Spec is what a host brings to a trial.
type Spec struct {
	Locks   multilock.Source
	Name    string          // of the locks
	User    string          // who they say holds them
	Command string          // and what for
	Where   string          // this place, so that people can compare it with another host's
	Hosts   int             // how many are to take part, this one included
	Wait    time.Duration   // for the others to come
	Here    func(hosts int) // is told how many are here, whenever this host has looked
}

// ttl frees the locks of a host that did not come to its end.
const ttl = 10 * time.Second

// Alone takes a lock that nobody else wants and gives it back; where that would stay
// taken it looks at one.
func Alone(ctx context.Context, s Spec) source.Finding {
	start := time.Now()
	try, did := s.takeOne, "took a lock and gave it back in %s"
	if source.Denies(s.Locks, source.TraitPromptRelease) {
		try, did = s.lookAtOne, "looked at a lock in %s; none was taken, because it would stay so until its time is over"
	}
	f := source.Finding{Subject: "trial", Severity: source.SeverityFine}
	switch err := try(ctx); {
	case errors.Is(err, multilock.ErrInvalid):
		f.Text = fmt.Sprintf("no lock was tried: %v", err)
	case err != nil:
		f.Severity, f.Text = source.SeverityUnusable, err.Error()
	default:
		f.Text = fmt.Sprintf(did, time.Since(start).Round(10*time.Microsecond))
	}
	return f
}

func (s Spec) takeOne(ctx context.Context) error {
	lock, err := multilock.TryAcquire(ctx, s.Locks, s.Name+"-"+strings.ToLower(rand.Text()), multilock.Options{TTL: ttl, User: s.User, Command: s.Command})
	if err == nil {
		err = lock.Release(ctx)
	}
	if err != nil {
		return fmt.Errorf("a lock could not be taken and given back: %w", err)
	}
	return nil
}

func (s Spec) lookAtOne(ctx context.Context) error {
	if _, err := multilock.Inspect(ctx, s.Locks, s.Name, multilock.Patience{}); err != nil {
		return fmt.Errorf("a lock could not be looked at: %w", err)
	}
	return nil
}

// Together has this host and others try the locks between them. That they came to no
// result is a finding; the error is context.Cause(ctx) if that ended first, and any
// other if the source failed. Whatever it is, this host's locks are given back.
func Together(ctx context.Context, s Spec) (Report, error) {
	h := newHost(s, paceOf(s))
	err := h.run(ctx)
	return h.report(), err
}

// pace is how long things take in a trial.
type pace struct {
	limit time.Duration // for each of the steps after the wait
	pause time.Duration // between two looks, or attempts
	hold  time.Duration // the shortest turn
	turns int           // that each host has at least
	ttl   time.Duration // of all its locks
}

const (
	defaultPause = 100 * time.Millisecond
	defaultHold  = 300 * time.Millisecond
	enoughTurns  = 3
	// stepTurns are the turns for which a step may last at least.
	stepTurns = 40
)

// paceOf suits the source: a server that others use, too, is asked less often.
func paceOf(s Spec) pace {
	p := pace{pause: defaultPause, hold: defaultHold, turns: enoughTurns, ttl: ttl}
	if paced, ok := s.Locks.(source.Paced); ok {
		p.pause, p.hold = paced.Pace()
	}
	p.limit = max(s.Wait, stepTurns*p.hold)
	return p
}
