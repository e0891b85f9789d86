//go:build unix

package main

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// test is what was learned of one test by running it alone on the code as it is.
type test struct {
	name    string
	took    time.Duration
	reaches []byte // by the number of a mutant: whether its switch was met
}

// profile runs each test alone, as many at a time as jobs says. The order of those that
// are of use is that in which they are tried: the shortest first.
func (b *binary) profile(ctx context.Context, work string, longest time.Duration, jobs int) (tests []test, leftOut []string, err error) {
	names, err := b.names()
	if err != nil {
		return nil, nil, err
	}
	var mu sync.Mutex
	err = parallel(ctx, jobs, names, func(ctx context.Context, name string) error {
		t, why, err := b.measure(ctx, work, name, longest)
		mu.Lock()
		defer mu.Unlock()
		if why == "" {
			tests = append(tests, t)
		} else {
			leftOut = append(leftOut, name+" "+why)
		}
		return err
	})
	slices.SortFunc(tests, func(a, b test) int { return cmp.Or(cmp.Compare(a.took, b.took), strings.Compare(a.name, b.name)) })
	return tests, leftOut, err
}

// measure runs one test on the code as it is. It says why it is of no use, if it is not.
func (b *binary) measure(ctx context.Context, work, name string, longest time.Duration) (t test, why string, err error) {
	file := filepath.Join(work, "reached-"+name)
	if err := os.WriteFile(file, make([]byte, len(b.mutants)+1), 0o666); err != nil {
		return t, "", err
	}
	if err := os.Chmod(file, 0o666); err != nil { // for tests that are somebody else for a while
		return t, "", err
	}
	start := time.Now()
	o, err := run{work: work, b: b, tests: []string{name}, limit: 2 * longest, reached: file}.do(ctx)
	if err != nil {
		return t, "", err
	}
	t = test{name: name, took: time.Since(start)}
	switch {
	case ctx.Err() != nil:
		return t, "", ctx.Err()
	case t.took > longest:
		return t, "takes " + t.took.Round(time.Second).String(), nil
	case !o.passed:
		return t, "fails on the code as it is", nil
	}
	t.reaches, err = os.ReadFile(file)
	return t, "", err
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
