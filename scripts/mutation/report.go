//go:build unix

package main

import "fmt"

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
	fmt.Println(r.summary())
	return clean
}

// summary says how many there are of each kind.
func (r *report) summary() string {
	listed, found := 0, map[verdict]int{}
	for _, m := range r.all {
		if r.known.reasons[m.key()] != "" {
			listed++
		}
	}
	for _, result := range r.results {
		found[result.Verdict]++
	}
	return fmt.Sprintf("%d changes, %d of them listed as equivalent; %d tried: %d killed, %d survived, %d not reached by any test",
		len(r.all), listed, len(r.results), found[killed], found[survived], found[unmet])
}
