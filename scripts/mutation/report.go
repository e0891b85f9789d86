//go:build unix

package main

import (
	"fmt"
	"os"
	"slices"
	"text/tabwriter"
)

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
	text := fmt.Sprintf("%s:%d %s, in %s\n%s    = %s\n", m.src.path, m.line, r.Verdict, m.function, m.diff(), m.key())
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
		case listed && result.Verdict == killed:
			clean = false
			fmt.Printf("%s:%d is noticed by %s, and listed as equivalent: %s\n", m.src.path, m.line, result.By, m.key())
		case listed:
			fmt.Printf("%s:%d equivalent: %s\n", m.src.path, m.line, reason)
		case result.Verdict != killed:
			clean = false
			fmt.Print(describe(m, result))
		}
	}
	r.table()
	return clean
}

// counts of one file.
type counts struct{ all, tried, killed, survived, unmet, equivalent int }

func (r *report) table() {
	files := map[string]*counts{"together": {}}
	var names []string
	for _, m := range r.all {
		if files[m.src.path] == nil {
			files[m.src.path] = &counts{}
			names = append(names, m.src.path)
		}
		for _, c := range []*counts{files[m.src.path], files["together"]} {
			r.count(c, m)
		}
	}
	slices.Sort(names)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(w, "changes\tequivalent\ttried\tkilled\tsurvived\tnot reached\t file")
	for _, name := range append(names, "together") {
		c := files[name]
		_, _ = fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%d\t%s\n", c.all, c.equivalent, c.tried, c.killed, c.survived, c.unmet, " "+name)
	}
	_ = w.Flush()
}

func (r *report) count(c *counts, m *mutant) {
	c.all++
	if _, listed := r.known.reasons[m.key()]; listed {
		c.equivalent++
	}
	result, tried := r.results[m]
	if !tried {
		return
	}
	c.tried++
	switch result.Verdict {
	case killed:
		c.killed++
	case survived:
		c.survived++
	case unmet:
		c.unmet++
	}
}
