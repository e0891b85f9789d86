package scenes_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/multilock/go/internal/explore"
	"github.com/multilock/go/internal/explore/locks"
	"github.com/multilock/go/internal/simnfs"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
)

// keeps holds the lock with the core's keeper, which renews it while during runs.
func keeps(during func(*explore.Actor, *multilock.Lock)) func(*explore.Actor) {
	return func(a *explore.Actor) {
		for !a.Gone() {
			lock, err := triesWith(a, multilock.Options{TTL: locks.TTL})
			if err == nil {
				defer lock.Detach() // the keeper of a crashed actor also ends
			}
			if !a.Gate("has asked") {
				return
			}
			if a.Note("try: %v", err); err == nil {
				a.Has = lock.Record().Token
				a.Rely(lock.Remaining)
				during(a, lock)
				givesUp(a, lock)
				return
			}
			a.Sleep(2 * exploreBeat)
		}
	}
}

// triesWith tries once, and breaks a dead holder's lock if that fails.
func triesWith(a *explore.Actor, opt multilock.Terms) (*multilock.Lock, error) {
	src, err := locks.Source(a)
	if err != nil {
		return nil, err
	}
	lock, err := multilock.TryOnce(a.Context(), src, "lock", opt)
	if errors.Is(err, multilock.ErrHeld) {
		_, alive := multilock.Break(a.Context(), src, "lock", multilock.BreakOptions{})
		if alive == nil && !locks.SomeoneWasSilent(a.World()) {
			a.World().Violate("I3: %s breaks a lock, and nobody was silent", a.Name)
		}
		return nil, errors.Join(err, alive)
	}
	return lock, err
}

// givesUp releases the lock. If the release succeeds, the actor had the lock until then.
func givesUp(a *explore.Actor, lock *multilock.Lock) {
	for tries := 0; a.Gate("releases") && tries < 5; tries++ {
		wrong := ownsTheLock(a.World(), a)
		if lock.Remaining() == 0 && wrong == "" {
			wrong = "its time was over"
		}
		a.Rely(nil)
		ends := time.Now().Add(lock.Remaining())
		err := lock.Release(context.WithoutCancel(a.Context()))
		if !a.Gate("has released") {
			return
		}
		if a.Note("released: %v", err); err == nil && wrong != "" && tries == 0 {
			a.World().Violate("I4: a release says that the lock was held, and %s", wrong)
		}
		if err == nil && time.Now().After(ends) {
			a.World().Violate("I4: a release says that the lock was held, and its time was over when it had an answer")
		}
		if !errors.Is(err, multilock.ErrUnsure) {
			return
		}
		a.Sleep(exploreBeat / 2)
	}
}

// staysUnder holds the lock for longer than a TTL, unless it is lost.
func staysUnder(a *explore.Actor, lock *multilock.Lock) {
	for range 11 {
		a.Sleep(exploreBeat + 170*time.Millisecond)
		switch lost := lock.Context().Err() != nil; {
		case lost && !a.Gone() && !locks.SomeoneWasSilent(a.World()):
			a.World().Violate("I3: %s has lost its lock, and nobody was silent", a.Name)
			return
		case lost || a.Gone():
			return
		}
	}
}

// playedThreads plays each order with one preemption, each schedule with one fault, and some with two. In the
// long form the faults are of all kinds, and both bounds are one larger.
func playedThreads(t *testing.T, sc *explore.Scenario) {
	t.Helper()
	more, drawn := 0, 100
	if *long {
		more, drawn = 1, 10_000
	}
	sc.Preemptions, sc.Faults = 2+more, 0
	proven(t, sc.Exhaust(t, 10*time.Minute))
	sc.Preemptions, sc.Faults = more, 1
	proven(t, sc.Exhaust(t, 20*time.Minute))
	sc.Preemptions, sc.Faults, sc.InTurn = 5, 2, false
	proven(t, sc.Sample(t, 1, drawn))
}

// threaded is a scenario of actors with several goroutines.
func threaded(programs ...func(*explore.Actor)) *explore.Scenario {
	sc := contest(programs...)
	for i := range sc.Actors {
		sc.Actors[i].Threads = true
	}
	sc.InTurn = true
	if !*long {
		sc.Kinds = []explore.Fate{explore.Crash, explore.Pause, explore.Slow, explore.Failed}
	}
	sc.Pause, sc.Nap, sc.Grid = sc.Pause+730*time.Millisecond, sc.Nap-590*time.Millisecond, 0
	return sc
}

// The keeper renews in the background while a call hangs or the host is suspended, and ends the
// lock's validity in time.
// Rule: I1, I2, I3, validity, heartbeat
func TestExploreKeeper(t *testing.T) {
	t.Parallel()
	sc := threaded(keeps(staysUnder), keeps(func(*explore.Actor, *multilock.Lock) {}))
	sc.AtEnd = nil
	playedThreads(t, sc)
}

// onceUnder runs a job at most once, as run --once does under its lock.
func onceUnder(a *explore.Actor, lock *multilock.Lock) {
	f := factsOf(a.World())
	src, err := locks.Source(a)
	if err != nil {
		return
	}
	attempts := lockgroup.Attempts{Source: src, Plan: &lockgroup.Plan{}, Work: func(ctx context.Context, under lockgroup.Attempt) (multilock.Result, error) {
		return lockgroup.WhileHeld(ctx, under.Lock, func(ctx context.Context) error { return runsOnce(ctx, a, f) })
	}}
	out, err := attempts.Run(a.Context(), lock)
	if !a.Gate("has run") {
		return
	}
	a.Note("ran: %d %v", out.Ran, err)
	token := lock.Record().Token
	unrecorded := &lockgroup.UnrecordedError{}
	switch {
	case err == nil && locks.Result(a.World(), "lock") == nil:
		a.World().Violate("I7: %s is told that it is done, and nothing is recorded", a.Name)
	case err == nil && out.Ran > 0 && f.committed == "":
		f.committed = token
	case errors.As(err, &unrecorded) && !errors.Is(err, multilock.ErrUnsure):
		f.refused[token] = true
	}
}

// runsOnce is the job, which takes longer than a TTL: no other actor runs it, and it has no result.
func runsOnce(ctx context.Context, a *explore.Actor, f *facts) error {
	if !a.Gate("begins the job") || ctx.Err() != nil {
		return context.Cause(ctx)
	}
	a.Note("begins the job")
	if there := locks.Result(a.World(), "lock"); there != nil {
		a.World().Violate("I7: %s begins the job, and it is recorded", a.Name)
	}
	if f.runs != nil && f.runs.Err() == nil && !f.runner.Gone() {
		a.World().Violate("I1: %s begins the job, and %s runs it", a.Name, f.runner.Name)
	}
	running, end := context.WithCancel(ctx)
	defer end()
	f.runs, f.runner = running, a
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(57170 * time.Millisecond):
		return nil
	}
}

// A job that runs once, under a lock with its keeper: it does not begin when it has a result, nor while a
// valid holder runs it.
// Rule: I7, validity, attempts
func TestExploreOnce(t *testing.T) {
	t.Parallel()
	sc := threaded(keeps(onceUnder), keeps(onceUnder))
	sc.Facts, sc.Always, sc.AtEnd = newFacts, keepsResults, isRecorded
	playedThreads(t, sc)
}

// isRecorded checks that the job has a result, if an actor is left.
func isRecorded(w *explore.World) {
	for _, a := range w.Actors() {
		if !a.Crashed && locks.Result(w, "lock") == nil && len(w.Met()) < 2 {
			w.Violate("I3: all have ended, and nothing is recorded")
		}
	}
}

// Two faults of heartbeats: one that was in progress for long counts from its start, for a holder that sends
// no more after it. Everything else is as usual.
// Rule: I2, validity
func TestExploreKeeperSigns(t *testing.T) {
	t.Parallel()
	sc := threaded(keeps(staysUnder), keeps(func(*explore.Actor, *multilock.Lock) {}))
	sc.AtEnd, sc.Kinds, sc.Preemptions, sc.Faults = nil, []explore.Fate{explore.Pause, explore.Doze}, 0, 2
	sc.Nap = 6*exploreBeat - 590*time.Millisecond // within its validity
	sc.Private = func(r simnfs.Request) bool { return r.Kind != "touch" || r.Path != "/.locks/lock" }
	proven(t, sc.Exhaust(t, 10*time.Minute))
}

// verifies checks now and then whether a lock without renewals is held.
func verifies(a *explore.Actor) {
	lock, err := triesWith(a, multilock.Detached{Options: multilock.Options{TTL: locks.TTL}})
	if err != nil {
		return
	}
	for range 3 {
		if !a.Gate("goes on") {
			return
		}
		a.Sleep(exploreBeat + 170*time.Millisecond)
		err := lock.Verify(a.Context())
		a.Note("verified: %v", err)
		if there := locks.Holder(a.World(), "lock"); err == nil && there != lock.Record().Token {
			a.World().Violate("I4: it is verified that %s has the lock, and the server has that of %s", a.Name, there)
		}
	}
	for err := multilock.ErrUnsure; errors.Is(err, multilock.ErrUnsure) && a.Gate("releases"); {
		err = lock.Release(context.WithoutCancel(a.Context()))
		a.Note("released: %v", err)
	}
}

// Without a keeper nothing ends the validity of a lock. A verification does not confirm the lock after its
// time, even if it was held when the server was asked.
// Rule: I4, validity
func TestExploreVerify(t *testing.T) {
	t.Parallel()
	sc := threaded(verifies, keeps(func(*explore.Actor, *multilock.Lock) {}))
	sc.AtEnd = nil
	playedThreads(t, sc)
}
