//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/multilock/go/internal/parallel"
)

// trial is one run over the mutants of one package.
type trial struct {
	*target
	options
	work   string
	report *report
	binary *binary
	tests  []test

	mu   sync.Mutex
	done int
	of   int
}

// try tries the mutants of one package.
func (o options) try(ctx context.Context, t *target, all []*mutant, known *equivalents) (*report, error) {
	work, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)                      //nolint:errcheck // what is left is in nobody's way
	if err := os.Chmod(work, 0o755); err != nil { // for tests that are somebody else for a while
		return nil, err
	}
	r := &trial{target: t, options: o, work: work, report: &report{path: t.path, all: all, known: known, results: map[*mutant]result{}}}
	open := o.chosen(all, known)
	if len(open) == 0 {
		return r.report, nil
	}
	if err := r.prepare(ctx, all); err != nil {
		return nil, err
	}
	open = slices.DeleteFunc(open, func(m *mutant) bool { return slices.Contains(r.report.refused, m) })
	r.of = len(open)
	fmt.Printf("%s: %d changes, %d to be tried with %d tests\n", t.path, len(all), r.of, len(r.tests))
	return r.report, parallel.Do(max(o.jobs, 1), len(open), func(i int) error { return r.one(ctx, open[i]) })
}

// prepare builds the package with its mutants, and learns what its tests reach.
func (r *trial) prepare(ctx context.Context, all []*mutant) (err error) {
	if r.binary, r.report.refused, err = r.build(r.work, all); err != nil {
		return err
	}
	r.binary.spare = r.spare
	r.tests, r.report.leftOut, err = r.binary.profile(ctx, r.work, r.longest, r.jobs)
	return err
}

// one tries a mutant, and keeps what came of it.
func (r *trial) one(ctx context.Context, m *mutant) error {
	found, err := m.try(ctx, r.work, r.binary, r.tests)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.results[m] = found
	r.done++
	if found.Assessment != killed {
		fmt.Fprintf(os.Stderr, "(%d of %d) %s", r.done, r.of, describe(m, found))
	}
	return nil
}

// result is what became of one mutant.
type result struct {
	Assessment assessment
	By         string // the test that killed it
	Doubtful   string // a test that failed once, and then passed
}

type assessment string

const (
	killed   assessment = "killed"
	survived assessment = "survived"
	unmet    assessment = "not reached" // by any test
)

// try runs the tests that reach a mutant, the short ones first, until one fails.
func (m *mutant) try(ctx context.Context, work string, b *binary, tests []test) (r result, err error) {
	tests = reaching(tests, m)
	if len(tests) == 0 {
		return result{Assessment: unmet}, nil
	}
	for _, batch := range batches(tests) {
		by, err := m.fails(ctx, work, b, batch)
		if err != nil {
			return r, err
		}
		if by == "" {
			continue
		}
		sure, err := m.confirm(ctx, work, b, batch, by)
		if err != nil {
			return r, err
		}
		if sure {
			return result{Assessment: killed, By: by}, nil
		}
		r.Doubtful = by
	}
	r.Assessment = survived
	return r, nil
}

// fails names the test that fails with the mutant, or "".
func (m *mutant) fails(ctx context.Context, work string, b *binary, batch []test) (string, error) {
	o, err := m.run(ctx, work, b, batch, m.id)
	switch {
	case err != nil || o.passed:
		return "", err
	case o.hung:
		return "a hang", nil
	case o.failed != "":
		return o.failed, nil
	}
	return "the end of the process", nil
}

// confirm makes sure that it was the mutant that made the test fail, and not a machine
// that is busy with something else: alone, the test has to fail once more with the
// mutant, and to pass without. What fails at once did not fail for want of time.
func (m *mutant) confirm(ctx context.Context, work string, b *binary, batch []test, by string) (bool, error) {
	for _, t := range batch {
		if name, _, _ := strings.Cut(t.name, "/"); name != by || t.took < 100*time.Millisecond {
			continue
		}
		again, err := m.run(ctx, work, b, []test{t}, m.id)
		if err != nil || again.passed {
			return false, err
		}
		without, err := m.run(ctx, work, b, []test{t}, 0)
		return without.passed, err
	}
	return true, nil
}

func (m *mutant) run(ctx context.Context, work string, b *binary, batch []test, id int) (outcome, error) {
	r := run{work: work, b: b, mutant: id, limit: b.spare}
	for _, t := range batch {
		r.tests = append(r.tests, t.name)
		r.limit += 6 * t.took
	}
	o, err := r.do(ctx)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return o, err
}
