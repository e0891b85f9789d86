//go:build unix

package main

import (
	"context"
	"strings"
	"time"
)

// result is what became of one mutant.
type result struct {
	Verdict  verdict
	By       string // the test that killed it
	Doubtful string // a test that failed once, and then passed
}

type verdict string

const (
	killed   verdict = "killed"
	survived verdict = "survived"
	unmet    verdict = "not reached" // by any test
)

// try runs the tests that reach a mutant, the short ones first, until one fails.
func (m *mutant) try(ctx context.Context, work string, b *binary, tests []test) (r result, err error) {
	tests = reaching(tests, m)
	if len(tests) == 0 {
		return result{Verdict: unmet}, nil
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
			return result{Verdict: killed, By: by}, nil
		}
		r.Doubtful = by
	}
	r.Verdict = survived
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
