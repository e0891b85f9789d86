//go:build unix

// Mutation changes the code of packages in one place at a time and says which changes
// no test of the package notices. See README.md, and -help.
package main

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// options are those of the command line.
type options struct {
	patterns   []string
	equivalent string
	only       string
	by         string
	sample     int
	seed       uint64
	jobs       int
	longest    time.Duration
	spare      time.Duration
	list       bool
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
	flag.StringVar(&o.only, "only", "", "only the changes whose line in the list contains this text")
	flag.StringVar(&o.by, "by", "", "the package whose tests are run, if it is not the changed one")
	flag.IntVar(&o.sample, "sample", 0, "the short form: so many changes a package, drawn at random")
	flag.Uint64Var(&o.seed, "seed", o.seed, "of the sample")
	flag.IntVar(&o.jobs, "jobs", o.jobs, "how many to try at a time")
	flag.DurationVar(&o.longest, "longest", o.longest, "tests that take longer are left out")
	flag.DurationVar(&o.spare, "spare", o.spare, "how much longer than six times its usual time a run of tests may take: more is a hang")
	flag.BoolVar(&o.list, "list", false, "only list the changes, and whether an entry of the list is stale")
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
	targets, err := load(o.patterns)
	if err != nil {
		return false, err
	}
	if err := o.testedBy(targets); err != nil {
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

// testedBy gives the packages the tests that were asked for.
func (o options) testedBy(targets []*target) error {
	if o.by == "" {
		return nil
	}
	found, err := load([]string{o.by})
	if err != nil {
		return err
	}
	for _, t := range targets {
		t.tests, t.testDir = found[0].path, found[0].dir
	}
	return nil
}

// chosen are the mutants that are to be tried. A sample is the same on every machine, and
// as good as the same after a change of the code, for each mutant is drawn by its own name.
func (o options) chosen(all []*mutant, known *equivalents) []*mutant {
	chosen := slices.DeleteFunc(slices.Clone(all), func(m *mutant) bool { return !strings.Contains(m.key(), o.only) })
	if o.sample > 0 && o.sample < len(chosen) {
		lot := func(m *mutant) string {
			sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", o.seed, m.key()))
			return string(sum[:])
		}
		slices.SortFunc(chosen, func(a, b *mutant) int { return strings.Compare(lot(a), lot(b)) })
		chosen = chosen[:o.sample]
	}
	return slices.DeleteFunc(chosen, func(m *mutant) bool { return known.reasons[m.key()] != "" && !o.recheck })
}

// report is what became of a package's mutants.
type report struct {
	path    string
	all     []*mutant
	known   *equivalents
	results map[*mutant]result
	refused []*mutant // by the compiler
	leftOut []string  // tests
}

func describe(m *mutant, r result) string {
	text := fmt.Sprintf("%s:%d %s, in %s\n%s    = %s\n", m.src.path, m.line, r.Assessment, m.function, m.diff(), m.key())
	if r.Doubtful != "" {
		text += fmt.Sprintf("    (%s failed once with it, and then passed)\n", r.Doubtful)
	}
	return text
}

// print says what survived, and whether that is nothing.
func (r *report) print() (clean bool) {
	clean = true
	fmt.Printf("\n== %s\n", r.path)
	for _, t := range r.leftOut {
		fmt.Printf("left out: %s\n", t)
	}
	for _, m := range r.refused {
		fmt.Printf("not tried, the compiler refuses it: %s\n", m.key())
	}
	for _, m := range r.all {
		result, tried := r.results[m]
		reason, listed := r.known.reasons[m.key()]
		switch {
		case !tried:
		case listed && result.Assessment == killed:
			clean = false
			fmt.Printf("%s:%d is noticed by %s, and listed as equivalent: %s\n", m.src.path, m.line, result.By, m.key())
		case listed:
			fmt.Printf("%s:%d equivalent: %s\n", m.src.path, m.line, reason)
		case result.Assessment != killed:
			clean = false
			fmt.Print(describe(m, result))
		}
	}
	fmt.Println(r.summary())
	return clean
}

// summary says how many there are of each kind.
func (r *report) summary() string {
	listed, found := 0, map[assessment]int{}
	for _, m := range r.all {
		if r.known.reasons[m.key()] != "" {
			listed++
		}
	}
	for _, result := range r.results {
		found[result.Assessment]++
	}
	return fmt.Sprintf("%d changes, %d of them listed as equivalent; %d tried: %d killed, %d survived, %d not reached by any test",
		len(r.all), listed, len(r.results), found[killed], found[survived], found[unmet])
}
