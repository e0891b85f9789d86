//go:build unix

package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/multilock/go/internal/parallel"
)

// test is what was learned of one test by running it alone on the code as it is.
type test struct {
	name    string // TestName, or TestName/subtest
	took    time.Duration
	reaches []byte // by the number of a mutant: whether its switch was met
}

// long is the time from which on a test is taken apart, if it has subtests.
const long = 2 * time.Second

// profile runs each test alone, as many at a time as jobs says, and each subtest of a long
// one, which then takes the place of that. The order of those that are of use is that in
// which they are tried: the shortest first.
func (b *binary) profile(ctx context.Context, work string, longest time.Duration, jobs int) (tests []test, leftOut []string, err error) {
	names, err := b.names()
	for len(names) > 0 && err == nil {
		var mu sync.Mutex
		var further []string
		err = parallel.Do(max(jobs, 1), len(names), func(i int) error {
			t, subtests, why, err := b.measure(ctx, work, names[i], longest)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case len(subtests) > 0:
				further = append(further, subtests...)
			case why == "":
				tests = append(tests, t)
			default:
				leftOut = append(leftOut, names[i]+" "+why)
			}
			return err
		})
		names = further
	}
	slices.SortFunc(tests, func(a, b test) int { return cmp.Or(cmp.Compare(a.took, b.took), strings.Compare(a.name, b.name)) })
	return tests, leftOut, err
}

// names are those of the package's tests.
func (b *binary) names() ([]string, error) {
	cmd := exec.Command(b.path, "-test.list", "^(Test|Fuzz|Example)")
	cmd.Dir = b.testDir
	out, err := cmd.Output()
	return strings.Fields(string(out)), err
}

// measure runs one test on the code as it is. It says why it is of no use, if it is not.
func (b *binary) measure(ctx context.Context, work, name string, longest time.Duration) (t test, subtests []string, why string, err error) {
	file := filepath.Join(work, fmt.Sprintf("reached-%d", runs.Load())+strings.ReplaceAll(name, "/", "-"))
	if err := os.WriteFile(file, make([]byte, len(b.mutants)+1), 0o666); err != nil {
		return t, nil, "", err
	}
	if err := os.Chmod(file, 0o666); err != nil { // for tests that are somebody else for a while
		return t, nil, "", err
	}
	start := time.Now()
	o, err := run{work: work, b: b, tests: []string{name}, limit: 2 * longest, reached: file}.do(ctx)
	if err != nil || ctx.Err() != nil {
		return t, nil, "", cmp.Or(err, ctx.Err())
	}
	t = test{name: name, took: time.Since(start)}
	if t.took > long && !strings.Contains(name, "/") {
		subtests = o.subtests()
	}
	switch {
	case t.took > longest:
		why = "takes " + t.took.Round(time.Second).String()
	case !o.passed:
		why = "fails on the code as it is"
	default:
		t.reaches, err = os.ReadFile(file)
	}
	return t, subtests, why, err
}

// reaching are the tests that reach a mutant.
func reaching(tests []test, m *mutant) []test {
	return slices.DeleteFunc(slices.Clone(tests), func(t test) bool { return t.reaches[m.id] == 0 })
}

// batches groups tests into a few runs: to start a process for each is slow, and so
// is to wait for long tests where a short one fails.
func batches(tests []test) (all [][]test) {
	spent, room := time.Duration(0), time.Duration(0)
	for _, t := range tests {
		if len(all) == 0 || room < t.took || strings.Contains(t.name, "/") {
			all = append(all, nil)
			room = max(500*time.Millisecond, spent)
		}
		all[len(all)-1] = append(all[len(all)-1], t)
		if room -= t.took; strings.Contains(t.name, "/") {
			room = 0 // a subtest runs alone
		}
		spent += t.took
	}
	return all
}
