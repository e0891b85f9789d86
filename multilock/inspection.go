package multilock

import (
	"context"
	"errors"
	"time"

	"github.com/multilock/go/multilock/source"
)

// firstInspection is how long a waiter only tries to acquire a lock before it inspects the holder. A lock
// that changes hands quickly is acquired sooner, and attempts cost less than inspections.
const firstInspection = 50 * time.Millisecond

// A lock that is free at every inspection and held at every attempt changes hands quickly, or the source
// contradicts itself. After contradictedOnce such inspections an acquisition pauses between attempts, and
// after contradictedMost it ends if it does not wait.
const (
	contradictedOnce = 3
	contradictedMost = 50
)

// inspection is what inspections of a lock have shown in one acquisition.
type inspection struct {
	seen           Observation // the last one, zero before the first
	at             time.Time
	due            time.Time // when to inspect next
	contradictions int       // consecutive inspections that contradicted a failed attempt
}

// inspect inspects the lock, breaks it if its holder is dead, and reports whether to make
// another attempt at once.
func (a *acquisition) inspect(ctx context.Context) (again bool, err error) {
	i := &a.inspection
	seen, err := ask(ctx, a.contender, a.contender.Look)
	if err != nil {
		return false, err
	}
	i.seen, i.at = seen, time.Now()
	i.due = i.at.Add(seen.Next)
	switch seen.State {
	case StateFree:
		return a.contradicted()
	case StateDead:
		i.due = time.Time{}
		if err := tell(ctx, a.contender, a.contender.Break); err != nil && !errors.Is(err, ErrHeld) {
			return false, err
		}
		return a.contradicted() // if the holder has resumed, the next inspection shows it
	case StateHeld:
		if a.mode == ifFree {
			return false, i.held(a.name)
		}
		if a.terms.Refuse != nil && a.mode == wait {
			if err := a.terms.Refuse(seen.Record); err != nil {
				return false, err
			}
		}
		if seen.Age != source.Unknown && seen.Age < time.Since(a.pacing.began) {
			a.pacing.pauses.Slow() // another process acquired the lock meanwhile, so others are waiting as well
		}
	case StateSuspect: // every mode that inspects watches the holder until it is clear
	}
	i.contradictions = 0
	return false, nil
}

// contradicted counts an inspection that found no live holder, and reports whether to make
// another attempt without a pause.
func (a *acquisition) contradicted() (again bool, err error) {
	i := &a.inspection
	i.contradictions++
	if i.contradictions >= contradictedMost && a.mode == ifFree {
		i.seen.Why = "it changes hands faster than one can look at it"
		return false, i.held(a.name)
	}
	return i.contradictions < contradictedOnce, nil
}

// held is the error that names the holder. It adds the time since the last inspection, which may be
// seconds, to the lock's age.
func (i *inspection) held(name string) error {
	seen := i.seen
	if seen.Age != source.Unknown {
		seen.Age += time.Since(i.at)
	}
	return &HeldError{Name: name, Observation: seen}
}

// limit shortens a pause if an inspection is due earlier.
func (i *inspection) limit(pause time.Duration) time.Duration {
	due := max(time.Until(i.due), 0)
	switch {
	case i.contradictions > 0:
		return pause // an inspection is due in any case, and shows nothing new
	case i.seen.State == StateSuspect:
		return due
	case pause <= DefaultPoll:
		return pause // the inspection can wait for the next attempt, and an idle waiter sleeps longer
	}
	return min(pause, due)
}
