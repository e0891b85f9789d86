package command

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/jointest"
	"github.com/multilock/go/cmd/multilock/internal/options"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
)

type doctorOptions struct {
	common
	timeout console.Duration
	join    bool
	mark    bool
	expect  console.Number
}

// Doctor examines the place where locks live.
func Doctor(e *Env) *cli.Command {
	o := &doctorOptions{}
	return &cli.Command{
		ArgsUsage: "[options]",
		Name:      "doctor",
		Usage:     "say whether locks can be relied on here",
		Description: `Says whether locks can be relied on here, and what to do if not. Exit code 1:
there is a warning. It leaves nothing behind, but for --mark.

   for i in 1 2 3; do
     ssh host$i multilock -d /shared doctor --join --expect 3 &
   done; wait

It examines the place where the locks live: what it is, how it is mounted, whether it
keeps the rules that locks are built on, how far its clock is from this host's. Then it
takes a lock of its own and gives it back (where that frees it: of a cooking lock it
looks at one), and lists what can be relied on. It leaves nothing but the directories
that the first use makes, and touches no lock of others.

With --join several hosts, each given the same line at the same time, try whether locks
keep them apart, which none of them can find out alone. They find each other in the place itself, take turns with one lock for some seconds,
compare what they saw, and tell of each other what they found. Whoever waits for the
others in vain says where it looked. The locks are called doctor-join and
doctor-join-NUMBER; all that stays is the counter of the first one's fencing numbers.

With --mark it also writes a small file into the directory, ` + shareddir.SharedMarkPath + `, which
says that hosts share it. With --require-shared, MULTILOCK_REQUIRE_SHARED=1 or
require_shared = true in a configuration file, no command uses a directory without that
file: so nothing is locked, and no job runs, where the share is not mounted.

Exits with 0 if all is well, 1 if there is a warning, 125 if locks cannot be taken
here or would not be safe, and if no other host joined or stayed to the end.`,
		Flags:  e.Flags("doctor", options.Values{"wait": &o.timeout, "join": &o.join, "mark": &o.mark, "expect": &o.expect}),
		Action: reading(e, &o.common, o.read, func(c *cli.Context) error { return runDoctor(c.Context, e, o) }),
	}
}

func (o *doctorOptions) read(*cli.Context) error {
	o.RequireShared = o.RequireShared && !o.mark
	if o.mark && !o.IsFiles() {
		return console.Usagef("doctor", "--mark: only a directory is marked, and all hosts see the same server")
	}
	return nil
}

func runDoctor(ctx context.Context, e *Env, o *doctorOptions) error {
	sigs := console.CatchSignals()
	defer sigs.Release()
	report := DoctorReport{Base: o.Public(), Group: o.Group, Findings: []source.Finding{}, Promises: []promiseView{}, where: o.Public()}
	err := report.examine(sigs.Until(ctx), e, o)
	if errors.As(err, new(*console.SignalError)) {
		return err
	}
	if err != nil {
		report.add("source", err)
	}
	verdict := report.verdict()
	report.Exit = console.ExitCode(verdict)
	if o.JSON {
		return errors.Join(verdict, e.PrintJSON(report))
	}
	return errors.Join(verdict, report.print(e, o))
}

var errNoAnswer = errors.New("there was no answer in the time of --wait: the server may be down or cut off, or the mount hangs")

// examine gathers what the source says of itself, and tries a lock if that shows
// nothing against it: alone, and then with other hosts. The error is for what kept
// it from coming to its end.
func (r *DoctorReport) examine(ctx context.Context, e *Env, o *doctorOptions) error {
	limited, cancel := context.WithTimeoutCause(ctx, o.timeout.Value, errNoAnswer)
	defer cancel()
	src, err := bounded.Call(limited, func(ctx context.Context) (*place.Source, error) { return e.Kinds.Open(ctx, e.Env, o.Place) })
	if err != nil {
		return err
	}
	r.where, r.Host, r.Promises = src.Where(), src.Self.Host, promisesOf(src.Locks)
	spec := jointest.Spec{Locks: src.Locks, Name: "doctor", User: src.Place.User, Command: "multilock doctor"}
	if err := r.examineAlone(limited, spec); err != nil {
		return err
	}
	r.examineQueues(limited, src)
	if o.mark && !slices.ContainsFunc(r.Findings, isUnusable) {
		if err := r.markShared(limited, src); err != nil {
			return err
		}
	}
	if o.join && !slices.ContainsFunc(r.Findings, isUnusable) {
		spec.Where = r.whereabouts(limited, src)
		if err := r.tryTogether(ctx, e, src, spec, o); err != nil {
			return err
		}
	}
	return src.Close(nil)
}

// markShared marks the directory. It may be that of the file server itself.
func (r *DoctorReport) markShared(ctx context.Context, src *place.Source) error {
	finding, err := bounded.Call(ctx, func(context.Context) (source.Finding, error) {
		path, kind, err := src.MarkShared()
		f := source.Finding{Subject: "mark", Severity: source.SeverityFine, Text: path + " says that hosts share this directory"}
		if kind != "" {
			f.Severity, f.Text = source.SeverityWarning, f.Text+", but it is on a filesystem of this host alone ("+kind+")"
			f.Advice = "if this host is not the file server, remove that file, mount the share, and mark it again"
		}
		return f, err
	})
	if err != nil {
		return err
	}
	r.Findings = append(r.Findings, finding)
	return nil
}

// examineAlone is what this host can find out by itself.
func (r *DoctorReport) examineAlone(ctx context.Context, spec jointest.Spec) error {
	if examiner, ok := spec.Locks.(source.Examiner); ok {
		found, err := bounded.Call(ctx, func(ctx context.Context) ([]source.Finding, error) { return examiner.Examine(ctx), nil })
		if err != nil {
			return err
		}
		r.Findings = append(r.Findings, found...)
	}
	if slices.ContainsFunc(r.Findings, isUnusable) {
		return nil
	}
	tried, err := bounded.Call(ctx, func(ctx context.Context) (source.Finding, error) { return jointest.Alone(ctx, spec), nil })
	if err != nil {
		return err
	}
	r.Findings = append(r.Findings, tried, findRun())
	return nil
}

// DoctorReport is what "doctor --json" prints.
type DoctorReport struct {
	Base     string           `json:"base"`
	Group    string           `json:"group"`
	Host     string           `json:"host"`
	Findings []source.Finding `json:"findings"`
	Join     *jointest.Report `json:"join,omitempty"`
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
