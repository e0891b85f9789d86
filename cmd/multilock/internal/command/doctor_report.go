package command

import (
	"fmt"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/cmd/multilock/internal/trial"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// DoctorReport is what "doctor --json" prints.
type DoctorReport struct {
	Base     string           `json:"base"`
	Group    string           `json:"group"`
	Host     string           `json:"host"`
	Findings []source.Finding `json:"findings"`
	Join     *trial.Report    `json:"join,omitempty"`
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

func (r *DoctorReport) add(subject string, err error) {
	r.Findings = append(r.Findings, source.Finding{Subject: subject, Severity: source.SeverityUnusable, Text: show.Explain(err)})
}

// verdict is the error where not all is well.
func (r *DoctorReport) verdict() error {
	unusable, warnings := false, 0
	for _, f := range r.Findings {
		switch f.Severity {
		case source.SeverityUnusable:
			unusable = true
		case source.SeverityWarning:
			warnings++
		case source.SeverityFine:
		}
	}
	switch {
	case unusable && r.unshown:
		return &console.CodedError{Code: console.ExitFailure, Text: "it was not shown that locks in " + r.where + " keep hosts apart"}
	case unusable:
		return &console.CodedError{Code: console.ExitFailure, Text: "locks in " + r.where + " cannot be relied on"}
	case warnings == 1:
		return &console.CodedError{Code: console.ExitNotDone, Text: "there is one warning about " + r.where}
	case warnings > 1:
		return &console.CodedError{Code: console.ExitNotDone, Text: fmt.Sprintf("there are %d warnings about %s", warnings, r.where)}
	}
	return nil
}

func (r *DoctorReport) print(e *Env, o *doctorOptions) error {
	for _, f := range r.Findings {
		if o.Quiet && f.Severity == source.SeverityFine {
			continue
		}
		if err := e.Print("%-8s  %s: %s\n", f.Severity, f.Subject, console.Harmless(f.Text)); err != nil {
			return err
		}
		if f.Advice == "" {
			continue
		}
		if err := e.Print("%-8s  %s\n", "", console.Harmless(f.Advice)); err != nil {
			return err
		}
	}
	if o.Quiet || len(r.Promises) == 0 {
		return nil
	}
	return r.printPromises(e)
}

func (r *DoctorReport) printPromises(e *Env) error {
	if err := e.Print("\nWhat %s promises:\n", console.Harmless(r.where)); err != nil {
		return err
	}
	var table show.Table
	for _, p := range r.Promises {
		kept := "?"
		if p.Kept != nil {
			kept = map[bool]string{true: "yes", false: "no"}[*p.Kept]
		}
		table.Row(p.Trait, kept, show.Dash(p.Why))
	}
	return table.Print(e.Env)
}
