//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"

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
	if found.Verdict != killed {
		fmt.Fprintf(os.Stderr, "(%d of %d) %s", r.done, r.of, describe(m, found))
	}
	return nil
}
