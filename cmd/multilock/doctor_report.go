package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// doctorReport is what "doctor --json" prints.
type doctorReport struct {
	Base     string           `json:"base"`
	Group    string           `json:"group"`
	Host     string           `json:"host"`
	Findings []source.Finding `json:"findings"`
	Join     *joinView        `json:"join,omitempty"`
	Promises []promiseView    `json:"promises"`
	Exit     int              `json:"exit"`

	where   string
	unshown bool // what is unusable is that other hosts showed nothing
}

// promiseView is a promise as --json shows it: null is what the source does not say.
type promiseView struct {
	Trait source.Trait `json:"trait"`
	Kept  *bool        `json:"kept"`
	Why   string       `json:"why,omitempty"`
}

func promisesOf(locks multilock.Source) []promiseView {
	views := []promiseView{}
	for _, trait := range source.Traits() {
		v := promiseView{Trait: trait}
		if p, ok := source.PromiseOf(locks, trait); ok {
			v.Kept, v.Why = &p.Kept, p.Why
		}
		views = append(views, v)
	}
	return views
}

func isUnusable(f source.Finding) bool { return f.Severity == source.SeverityUnusable }

func (r *doctorReport) add(subject string, err error) {
	r.Findings = append(r.Findings, source.Finding{Subject: subject, Severity: source.SeverityUnusable, Text: explain(err)})
}

// doctorError is the verdict where not all is well.
type doctorError struct {
	unusable bool
	unshown  bool
	warnings int
	where    string
}

func (d *doctorError) Error() string {
	switch {
	case d.unshown:
		return "it was not shown that locks in " + d.where + " keep hosts apart"
	case d.unusable:
		return "locks in " + d.where + " cannot be relied on"
	case d.warnings == 1:
		return "there is one warning about " + d.where
	}
	return fmt.Sprintf("there are %d warnings about %s", d.warnings, d.where)
}

func (d *doctorError) code() int {
	if d.unusable {
		return exitFailure
	}
	return exitNotDone
}

func (r *doctorReport) verdict() error {
	d := &doctorError{where: r.where, unshown: r.unshown}
	for _, f := range r.Findings {
		switch f.Severity {
		case source.SeverityUnusable:
			d.unusable = true
		case source.SeverityWarning:
			d.warnings++
		case source.SeverityFine:
		}
	}
	if !d.unusable && d.warnings == 0 {
		return nil
	}
	return d
}

func (r *doctorReport) print(e *env, o *doctorOptions) error {
	for _, f := range r.Findings {
		if o.quiet && f.Severity == source.SeverityFine {
			continue
		}
		if err := e.print("%-8s  %s: %s\n", f.Severity, f.Subject, harmless(f.Text)); err != nil {
			return err
		}
		if f.Advice == "" {
			continue
		}
		if err := e.print("%-8s  %s\n", "", harmless(f.Advice)); err != nil {
			return err
		}
	}
	if o.quiet || len(r.Promises) == 0 {
		return nil
	}
	return r.printPromises(e)
}

func (r *doctorReport) printPromises(e *env) error {
	if err := e.print("\nWhat %s promises:\n", harmless(r.where)); err != nil {
		return err
	}
	table := tabwriter.NewWriter(e.stdout, 0, 0, 2, ' ', 0)
	for _, p := range r.Promises {
		kept := "?"
		if p.Kept != nil {
			kept = map[bool]string{true: "yes", false: "no"}[*p.Kept]
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\n", p.Trait, kept, dash(harmless(p.Why)))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print the promises: %w", err)
	}
	return nil
}
