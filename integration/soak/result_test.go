//go:build linux

package soak_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/source"
)

// result is what a run finds. The lists must be empty in the end.
type result struct {
	out      io.Writer
	violated context.Context //nolint:containedctx // ends at the first violation
	violate  context.CancelFunc

	mu         sync.Mutex
	violations []string // two holders at a time
	stuck      []string // locks that nobody could take
	fences     []string // fence numbers that did not grow
	failures   []string // workers, or the lab, failed
	doubts     []string // calls of workers without an answer
	tallies    map[string]int
	recoveries []recovery
	broken     int // locks of dead or silent holders that others broke
}

// recovery is the time from the end of faults until every lock was taken again.
type recovery struct {
	took  time.Duration
	after string
}

func newResult(out io.Writer) *result {
	r := &result{out: out, tallies: map[string]int{}}
	r.violated, r.violate = context.WithCancel(context.Background())
	return r
}

// untilViolated ends at the first violation, if that is what the run is for.
func (r *result) untilViolated(only bool) context.Context {
	if only {
		return r.violated
	}
	return context.Background()
}

// add prints what is found at once: the run may take hours.
func (r *result) add(list *[]string, kind, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*list = append(*list, text)
	fmt.Fprintf(r.out, "%s: %s\n", kind, text)
}

func (r *result) fail(err error) { r.add(&r.failures, "FAILURE", err.Error()) }

func (r *result) stick(text string) { r.add(&r.stuck, "STUCK", text) }

func (r *result) must(err error) {
	if err != nil {
		r.fail(err)
	}
}

// hopeless says that the lab or the workers fail, so that going on shows nothing.
func (r *result) hopeless() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.failures) > 10
}

// judge says what the end of a worker means. It may have been killed, or have gone
// down with its host; else it has to end without an error, when it is asked to.
func (r *result) judge(m *member, ended error, hostUp bool) {
	said := strings.TrimSpace(m.said.String())
	var exit *exec.ExitError
	switch {
	case errors.As(ended, &exit) && exit.ExitCode() == exitDouble:
		r.add(&r.violations, "DOUBLE HOLDER", said)
		r.violate()
	case ended != nil && !m.condemned() && hostUp:
		r.fail(fmt.Errorf("%s: %w: %s", m.proc, ended, said))
	case said != "" && hostUp:
		r.add(&r.doubts, "doubt", m.proc+": "+said)
	}
}

// tally counts what was done to the cluster.
func (r *result) tally(what string, done bool) {
	if !done {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tallies[what]++
}

func (r *result) recovered(took time.Duration, after string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recoveries = append(r.recoveries, recovery{took, after})
}

// check has the checker of histories look for what the register did not see.
func (r *result) check(events []locktest.Event) {
	all := faults(locktest.Check(events))
	holds := faults(locktest.Check(slices.DeleteFunc(slices.Clone(events), func(e locktest.Event) bool { return e.Kind == locktest.Fenced })))
	for _, text := range holds {
		r.add(&r.violations, "DOUBLE HOLDER", text)
	}
	for _, text := range all {
		if !slices.Contains(holds, text) {
			r.add(&r.fences, "FENCE", text)
		}
	}
}

// faults takes a joined error apart.
func faults(err error) []string {
	if err == nil {
		return nil
	}
	return strings.Split(err.Error(), "\n")
}

func (r *result) takeovers(history []source.Event) {
	for _, e := range history {
		if e.What == source.EventBroke {
			r.broken++
		}
	}
}

// line is the short form for the progress.
func (r *result) line() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	faults := 0
	for _, n := range r.tallies {
		faults += n
	}
	return fmt.Sprintf("%d faults, double holders %d, stuck %d, failures %d", faults, len(r.violations), len(r.stuck), len(r.failures))
}

// longest is the slowest recovery, and the middle one.
func (r *result) longest() (slowest recovery, median time.Duration) {
	if len(r.recoveries) == 0 {
		return recovery{}, 0
	}
	sorted := slices.SortedFunc(slices.Values(r.recoveries), func(a, b recovery) int { return cmp.Compare(a.took, b.took) })
	return sorted[len(sorted)-1], sorted[len(sorted)/2].took
}
