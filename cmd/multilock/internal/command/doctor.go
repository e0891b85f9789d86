package command

import (
	"context"
	"errors"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/jointest"
	"github.com/multilock/go/cmd/multilock/internal/options"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/cmd/multilock/job"
	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

type doctorOptions struct {
	common
	timeout console.Duration
	join    bool
	mark    bool
	expect  console.Number
}

// Doctor checks the place of the locks.
func Doctor(e *Env) *cli.Command {
	o := &doctorOptions{}
	return &cli.Command{
		ArgsUsage: "[options]",
		Name:      "doctor",
		Usage:     "check whether locking is safe here",
		Description: `Checks whether locking is safe here, and prints what to do if not.

   for i in 1 2 3; do
     ssh host$i multilock -d /shared doctor --join --expect 3 &
   done; wait

The exit code is 0 if all is well, 1 if there is a warning, and 125 if locks cannot be
acquired here or would not be safe, or if no other host joined or stayed until the
end. It leaves nothing behind, except with --mark.`,
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
	report := DoctorReport{Base: o.Public(), Group: o.Group, Findings: []source.Finding{}, Guarantees: []guaranteeView{}, where: o.Public()}
	err := report.examine(sigs.Until(ctx), e, o)
	if errors.As(err, new(*console.SignalError)) {
		return err
	}
	if err != nil {
		report.Findings = append(report.Findings, source.Unusable("source", show.Explain(err), ""))
	}
	assessment := report.assessment()
	report.Exit = assessment.code
	if o.JSON {
		return errors.Join(assessment.failure(), e.PrintJSON(report))
	}
	err = report.print(e, o, assessment)
	if assessment.code != console.ExitOK {
		err = errors.Join(&console.ReportedError{Code: assessment.code}, err)
	}
	return err
}

var errNoAnswer = errors.New("no answer within the time of --wait: the server may be down or cut off, or the mount hangs")

// examine collects the source's findings. If they allow it, it tests a lock on this host, and then with other
// hosts. It returns an error if the checks could not be completed.
func (r *DoctorReport) examine(ctx context.Context, e *Env, o *doctorOptions) error {
	limited, cancel := context.WithTimeoutCause(ctx, o.timeout.Value, errNoAnswer)
	defer cancel()
	src, err := bounded.Call(limited, func(ctx context.Context) (*place.Source, error) { return e.Kinds.Open(ctx, e.Env, o.Place) })
	if err != nil {
		return err
	}
	r.where, r.Host, r.Guarantees = src.Where(), src.Self.Host, guaranteesOf(src.Locks)
	r.joinable = src.Require("", joinNeeds...) == nil
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
		if err := r.tryTogether(ctx, e, src, spec, o); err != nil {
			return err
		}
	}
	return src.Close(nil)
}

// markShared marks the directory as shared. This host may be the file server.
func (r *DoctorReport) markShared(ctx context.Context, src *place.Source) error {
	finding, err := bounded.Call(ctx, func(context.Context) (source.Finding, error) {
		path, kind, err := src.MarkShared()
		if kind != "" {
			return source.Warning("mark", path+" marks this directory as shared, but it is on a local filesystem ("+kind+")",
				"if this host is not the file server, remove that file, mount the share, and mark it again"), err
		}
		return source.Fine("mark", path+" marks this directory as shared"), err
	})
	if err != nil {
		return err
	}
	r.Findings = append(r.Findings, finding)
	return nil
}

// examineAlone runs the checks that need no other host.
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
	r.Findings = append(r.Findings, tried, source.Fine("run", job.Reach))
	return nil
}

// DoctorReport is the output of "doctor --json".
type DoctorReport struct {
	Base       string           `json:"base"`
	Group      string           `json:"group"`
	Host       string           `json:"host"`
	Findings   []source.Finding `json:"findings"`
	Join       *jointest.Report `json:"join,omitempty"`
	Guarantees []guaranteeView  `json:"guarantees"`
	Exit       int              `json:"exit"`

	where    string
	joinable bool // other hosts can take part in a test
	unshown  bool // locks could not be tested between hosts, or the test was inconclusive
}

// guaranteeView is a guarantee in the output of --json. Kept is null if it is not known.
type guaranteeView struct {
	Trait source.Trait `json:"trait"`
	Kept  *bool        `json:"kept"`
	Why   string       `json:"why,omitempty"`
}

func guaranteesOf(locks multilock.Source) []guaranteeView {
	views := []guaranteeView{}
	for _, trait := range source.Traits() {
		v := guaranteeView{Trait: trait}
		if p, ok := source.GuaranteeOf(locks, trait); ok {
			v.Kept, v.Why = &p.Kept, p.Why
		}
		views = append(views, v)
	}
	return views
}

func isUnusable(f source.Finding) bool { return f.Severity == source.SeverityUnusable }
