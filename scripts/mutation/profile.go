//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// test is what was learned of one test by running it alone on the code as it is.
type test struct {
	name    string
	took    time.Duration
	reaches []byte // by the number of a mutant: whether its switch was met
}

// profile runs each test alone. The order is that in which they are tried: the
// shortest first.
func (b *binary) profile(ctx context.Context, work string, longest time.Duration) (tests []test, leftOut []string, err error) {
	names, err := b.names()
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		t := test{name: name}
		file := filepath.Join(work, "reached")
		if err := os.WriteFile(file, make([]byte, len(b.mutants)+1), 0o666); err != nil {
			return nil, nil, err
		}
		if err := os.Chmod(file, 0o666); err != nil { // for tests that are somebody else for a while
			return nil, nil, err
		}
		start := time.Now()
		o, err := run{work: work, b: b, tests: []string{name}, limit: longest * 2, reached: file}.do(ctx)
		if err != nil {
			return nil, nil, err
		}
		t.took = time.Since(start)
		if !o.passed || t.took > longest {
			leftOut = append(leftOut, fmt.Sprintf("%s (%s)", name, map[bool]string{true: "passes, after " + t.took.Round(time.Second).String(), false: "fails on the code as it is"}[o.passed]))
			continue
		}
		if t.reaches, err = os.ReadFile(file); err != nil {
			return nil, nil, err
		}
		tests = append(tests, t)
	}
	slices.SortStableFunc(tests, func(a, b test) int { return int(a.took - b.took) })
	return tests, leftOut, ctx.Err()
}

// reaching are the tests that reach a mutant; all of them, if nothing is known.
func reaching(tests []test, m *mutant) []test {
	if m.wrap == nil {
		return tests
	}
	return slices.DeleteFunc(slices.Clone(tests), func(t test) bool { return t.reaches[m.id] == 0 })
}

// batches groups tests into a few runs: to start a process for each is slow, and so
// is to wait for long tests where a short one fails.
func batches(tests []test) (all [][]test) {
	spent, room := time.Duration(0), time.Duration(0)
	for _, t := range tests {
		if len(all) == 0 || room < t.took {
			all = append(all, nil)
			room = max(500*time.Millisecond, spent)
		}
		all[len(all)-1] = append(all[len(all)-1], t)
		room -= t.took
		spent += t.took
	}
	return all
}
