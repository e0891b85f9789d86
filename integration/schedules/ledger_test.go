package schedules_test

import (
	"context"
	"errors"
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/explore"
	"github.com/multilock/go/multilock/source"
)

// ledger records what processes were told when they recorded the result of a job that runs once.
type ledger struct {
	committed string          // token of the first process whose commit succeeded
	refused   map[string]bool // tokens of processes that were told that nothing is recorded
}

func newLedger() ledger { return ledger{refused: map[string]bool{}} }

// commits records a result if there is none, as run --once does.
func (l *ledger) commits(a *explore.Actor, lease source.Lease) {
	token, before := lease.Record().Token, l.committed
	found, err := lease.(source.Committer).Outcome(context.Background())
	a.Note("outcome: %s %v", found.Token, err)
	switch {
	case err == nil && l.refused[found.Token]:
		a.World().Violate("I7: %s got a result that was reported as not recorded", a.Name)
	case errors.Is(err, source.ErrNoResult) && before != "":
		a.World().Violate("I7: %s sees no result, although one was committed", a.Name)
	}
	if !errors.Is(err, source.ErrNoResult) || !a.Believes() {
		return
	}
	err = lease.(source.Committer).Commit(context.Background(), source.Result{
		Name: lease.Record().Name, Token: token, By: lease.Record().Holder.Identity, Attempt: 1, Final: true, Start: time.Now(),
	})
	a.Note("commit: %v", err)
	switch {
	case err == nil && l.committed == "":
		l.committed = token
	case err == nil:
		a.World().Violate("I7: %s has replaced a recorded result", a.Name)
	case !errors.Is(err, source.ErrUnsure):
		l.refused[token] = true
	}
}

// compares checks the result at the end.
func (l *ledger) compares(w *explore.World, src source.Ledger, failed error, name string) {
	if failed != nil {
		w.Violate("I7: the result cannot be read: %v", failed)
		return
	}
	found, err := src.Result(context.Background(), name)
	switch {
	case errors.Is(err, source.ErrNoResult) && l.committed == "":
	case err != nil:
		w.Violate("I7: the result cannot be read: %v", err)
	case l.committed != "" && found.Token != l.committed:
		w.Violate("I7: the result is that of %q, but the commit of %s had succeeded", found.Token, l.committed)
	case l.refused[found.Token]:
		w.Violate("I7: a result is recorded that was reported as not recorded")
	}
}

// isFree requires that the lock is free at the end, unless a process crashed, an attempt was executed
// after its contender gave up, or a second fault hit the recovery from the first.
func isFree(w *explore.World, holder string) {
	left := func(f explore.Fate) bool { return f == explore.Crash || f == explore.Late }
	if holder != "" && len(w.Met()) < 2 && !slices.ContainsFunc(w.Met(), left) {
		w.Violate("I3: %s still has the lock, although no process crashed", holder)
	}
}

// undisturbed is a connection to a server without faults.
func undisturbed(_, _ string, _ bool, execute func() error) error { return execute() }

func proven(t *testing.T, r explore.Report) {
	t.Helper()
	t.Log(r)
	if r.Violation != "" {
		require.Fail(t, r.Violation, "replay with %s\n%s", r.Choices, r.Trace)
	}
}

// explored explores each order with two preemptions, each order with one fault (with -long, also one
// preemption), and a sample of orders with two faults.
func explored(t *testing.T, sc *explore.Scenario) {
	t.Helper()
	sc.Preemptions, sc.Faults = 2, 0
	proven(t, sc.Exhaust(t, 10*time.Minute))
	sc.Preemptions, sc.Faults = 0, 1
	proven(t, sc.Exhaust(t, 10*time.Minute))
	if *long {
		sc.Preemptions = 1
		proven(t, sc.Exhaust(t, 10*time.Minute))
	}
	sc.Preemptions, sc.Faults, sc.InTurn = 5, 2, false
	proven(t, sc.Sample(t, 1, 300))
}

var long = flag.Bool("long", false, "play more schedules, for ten minutes each")
