package scenes_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/explore"
	"github.com/multilock/go/multilock/source"
)

// events are the events of a lock in a schedule, in order.
type events struct{ all []string }

// tells acquires the lock for a moment, and records its events.
func tells(a *explore.Actor) {
	note := func(what string, err error) {
		a.Looks()
		f := a.World().Facts.(*events)
		f.all = append(f.all, fmt.Sprintf("%s %s %s %v", a.World().Elapsed(), a.Name, what, err))
	}
	contendsDoing(a, func(lease source.Lease) {
		note("acquired", nil)
		a.Sleep(exploreBeat)
		note("renewed", lease.Renew(context.Background()))
	})
	note("ended", nil)
}

// Skipped schedules have no other outcome: with every schedule, and with those that Remember leaves, all
// events of the lock occur, and the server has the same final states.
// Rule: none (explorer)
func TestExploreLeavesOutNoEnd(t *testing.T) {
	t.Parallel()
	for name, sc := range map[string]func() *explore.Scenario{
		"silent": func() *explore.Scenario { return contest(contends, contends) },
		"told":   func() *explore.Scenario { return contest(tells, tells) },
		"three":  func() *explore.Scenario { return contest(contends, contends, looksOn) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			within := []bounds{{2, 0, false}, {0, 1, false}, {1, 1, true}}
			more := []bounds{{1, 1, false}, {0, 2, true}}
			if name == "three" {
				within, more = []bounds{{1, 0, false}, {0, 1, true}}, []bounds{{2, 0, true}, {1, 1, true}}
			}
			if *long {
				within = append(within, more...)
			}
			for _, b := range within {
				sameEnds(t, sc, b)
			}
		})
	}
}

// endOf is the same after exchanging the two equal actors.
func endOf(w *explore.World) string {
	events := strings.Join(w.Facts.(*events).all, "; ")
	swap := strings.NewReplacer("token A", "token B", "token B", "token A", "hostA", "hostB", "hostB", "hostA").Replace
	one, other := w.Actors()[0].Number(), w.Actors()[1].Number()
	ident := func(id uint64) uint64 {
		switch id >> 32 {
		case one:
			return other<<32 | id&0xffffffff
		case other:
			return one<<32 | id&0xffffffff
		}
		return id
	}
	swapped := w.EndAs(ident, swap) + strings.NewReplacer(" A ", " B ", " B ", " A ").Replace(events)
	return min(w.End()+events, swapped)
}

func sameEnds(t *testing.T, scene func() *explore.Scenario, b bounds) {
	t.Helper()
	ends := func(remember, everyOrder bool) (map[string]bool, explore.Report) {
		sc, ends := scene(), map[string]bool{}
		sc.Preemptions, sc.Faults, sc.InTurn = b.preemptions, b.faults, b.inTurn
		sc.Remember, sc.EveryOrder = remember, everyOrder
		alike(sc)
		sc.Facts = func() any { return &events{} }
		sc.AtEnd = func(w *explore.World) {
			nothingIsLeft(w)
			ends[endOf(w)] = true
		}
		r := sc.Exhaust(t, time.Hour)
		require.Empty(t, r.Violation, r.Trace)
		require.True(t, r.Complete)
		return ends, r
	}
	all, every := ends(false, true)
	orders, some := ends(true, true)
	least, few := ends(true, false)
	t.Logf("%+v: %s; %s; %s", b, every, some, few)
	require.Equal(t, all, orders)
	require.Equal(t, all, least)
}
