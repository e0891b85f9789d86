//go:build unix

// Mutation changes the code of packages in one place at a time and says which changes
// no test of the package notices. See README.md, and -help.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// options are those of the command line.
type options struct {
	patterns   []string
	equivalent string
	results    string
	only       string
	sample     int
	seed       uint64
	jobs       int
	longest    time.Duration
	spare      time.Duration
	list       bool
	fresh      bool
	recheck    bool
}

const usage = `usage: scripts/mutants [options] PACKAGE...

Changes the code of each package in one place at a time, runs the package's tests in
their short form on each, and prints the changes that no test notices. The tree is not
touched. Signals and mounts are not changed, for the tests are really run.

Exit code 0: all are noticed, or listed as equivalent. 1: some survived, or an entry
of the list is stale. 2: anything else.

`

// defaults are the options that are not named.
func defaults(equivalent string) options {
	return options{equivalent: equivalent, seed: 1, jobs: 1, longest: time.Minute, spare: 20 * time.Second}
}

func main() {
	o := defaults("scripts/mutation/equivalent.txt")
	flag.Usage = func() {
		_, _ = fmt.Fprint(flag.CommandLine.Output(), usage)
		flag.PrintDefaults()
	}
	flag.StringVar(&o.equivalent, "equivalent", o.equivalent, "the list of changes that nobody need notice, with the reasons")
	flag.StringVar(&o.results, "results", "", "a file that keeps what was found: run again, and it goes on where it was")
	flag.StringVar(&o.only, "only", "", "only the changes whose line in the list contains this text")
	flag.IntVar(&o.sample, "sample", 0, "the short form: so many changes a package, drawn at random")
	flag.Uint64Var(&o.seed, "seed", o.seed, "of the sample")
	flag.IntVar(&o.jobs, "jobs", o.jobs, "how many to try at a time")
	flag.DurationVar(&o.longest, "longest", o.longest, "tests that take longer are left out")
	flag.DurationVar(&o.spare, "spare", o.spare, "how much longer than six times its usual time a run of tests may take: more is a hang")
	flag.BoolVar(&o.list, "list", false, "only list the changes, and whether an entry of the list is stale")
	flag.BoolVar(&o.fresh, "fresh", false, "forget what the file of results knows")
	flag.BoolVar(&o.recheck, "recheck", false, "try those that are listed as equivalent as well: one that is noticed does not belong there")
	flag.Parse()
	if o.patterns = flag.Args(); len(o.patterns) == 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	clean, err := o.run(ctx)
	stop()
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	case !clean:
		os.Exit(1)
	}
}

// run reports whether nothing is left to be done.
func (o options) run(ctx context.Context) (clean bool, err error) {
	targets, err := load(".", o.patterns)
	if err != nil {
		return false, err
	}
	known, err := readEquivalents(o.equivalent)
	if err != nil {
		return false, err
	}
	all := map[*target][]*mutant{}
	var flat []*mutant
	for _, t := range targets {
		all[t] = t.mutants()
		flat = append(flat, all[t]...)
	}
	stale := known.stale(targets, flat)
	for _, key := range stale {
		fmt.Printf("stale: %s lists a change that there is not: %s\n", o.equivalent, key)
	}
	if o.list {
		for _, m := range flat {
			fmt.Println(m.key())
		}
		return len(stale) == 0, nil
	}
	clean = len(stale) == 0
	for _, t := range targets {
		report, err := o.try(ctx, t, all[t], known)
		if err != nil {
			return false, fmt.Errorf("%s: %w", t.path, err)
		}
		clean = report.print() && clean
	}
	return clean, nil
}

// chosen are the mutants that are to be tried.
func (o options) chosen(all []*mutant, known *equivalents) []*mutant {
	var chosen []*mutant
	for _, m := range all {
		_, equivalent := known.reasons[m.key()]
		if (!equivalent || o.recheck) && strings.Contains(m.key(), o.only) {
			chosen = append(chosen, m)
		}
	}
	if o.sample > 0 && o.sample < len(chosen) {
		r := rand.New(rand.NewPCG(o.seed, 0))
		r.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
		chosen = chosen[:o.sample]
	}
	return chosen
}

func (o options) memory(work string) (*memory, error) {
	path := o.results
	if path == "" {
		path = filepath.Join(work, "results")
	}
	if o.fresh {
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			return nil, err
		}
	}
	return openMemory(path)
}

// parallel does something for each, n at a time, until one fails.
func parallel[T any](ctx context.Context, n int, all []T, do func(context.Context, T) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan T)
	var workers sync.WaitGroup
	for range max(n, 1) {
		workers.Go(func() {
			for x := range next {
				if err := do(ctx, x); err != nil {
					cancel(err)
				}
			}
		})
	}
feed:
	for _, x := range all {
		select {
		case next <- x:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	workers.Wait()
	return context.Cause(ctx)
}
