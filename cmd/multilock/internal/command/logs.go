package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/options"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/printed"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

type logsOptions struct {
	common
	follow bool
	joblog bool
	failed bool
	number console.Number // of a run under the lock; 0 is the last one, -1 the one before it
}

// Logs prints the output of jobs and runs.
func Logs(e *Env) *cli.Command {
	o := &logsOptions{}
	return &cli.Command{
		Name:      "logs",
		Usage:     "print the output of jobs and runs",
		ArgsUsage: "[-g GROUP] [options] [NAME...]",
		Description: `Prints the output of the jobs of a batch, and of runs with "run --capture".

   multilock -d /shared -g convert logs page7 --follow
   multilock -d /shared -g convert logs --failed
   multilock -d /shared logs nightly --run -1`,
		Flags:  e.Flags("logs", options.Values{"follow": &o.follow, "run": &o.number, "failed": &o.failed, "joblog": &o.joblog}),
		Action: action(e, &o.common, o.read, func(ctx context.Context, src *place.Source) error { return o.run(ctx, e, src) }),
	}
}

func (o *logsOptions) read(*cli.Context) error {
	if o.follow && len(o.names) != 1 {
		return console.Usagef("logs", "--follow: name one job")
	}
	return nil
}

func (o *logsOptions) run(ctx context.Context, e *Env, src *place.Source) error {
	if err := src.CheckNames(o.names); err != nil {
		return err
	}
	if o.joblog {
		return printJoblog(ctx, e, src)
	}
	if manifests, ok := src.Locks.(source.ManifestStore); ok {
		var err error
		if o.names, err = joblist.Padded(ctx, manifests, o.names); err != nil {
			return err
		}
	}
	k, with := src.Locks.(logStore)
	if !with {
		return console.Usagef("logs", "this source has no place for what jobs print: see the directory of batch --logs, or multilock-logs/%s where the batch was started", fileName(src.Place.Group))
	}
	jobs, err := shownByName(o.names), error(nil)
	if o.failed {
		jobs, err = shownFailed(ctx, src)
	}
	if err == nil {
		err = markCaptured(src, jobs)
	}
	switch {
	case err != nil:
		return err
	case o.follow && (jobs[0].captured || o.number.Given):
		return o.showRun(ctx, e, src, nil, jobs[0].name)
	case o.follow:
		return o.followJob(ctx, e, src, k)
	}
	dir, err := k.FindLogs()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	r := logsReader(e, dir)
	if dir != nil {
		defer dir.Close() //nolint:errcheck // a directory
	}
	if len(o.names) == 0 && !o.failed {
		return o.list(ctx, e, src, r)
	}
	if len(jobs) == 0 {
		return o.reportEmpty(ctx, e, src, "no job in %s has failed")
	}
	return o.show(ctx, e, src, r, jobs)
}

// reportEmpty reports why nothing is listed: no job has run, or else the reason in otherwise.
func (o *logsOptions) reportEmpty(ctx context.Context, e *Env, src *place.Source, otherwise string) error {
	if o.Quiet {
		return nil
	}
	ledger, err := place.Ability[source.Ledger](src, "logs", source.TraitResults)
	if err != nil {
		return err
	}
	names, err := ledger.Results(ctx)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		otherwise = "there are no results in %s; check -d and -g if you expected jobs there"
	}
	e.Say(otherwise, src.Where())
	return nil
}

func logsReader(e *Env, dir *fslock.Logs) *printed.Reader {
	return &printed.Reader{Dir: dir, LeftOut: func(err error) { e.Say("warning: %v", err) }}
}

// loggedJob is a job in the output of "logs --json".
type loggedJob struct {
	Name     string    `json:"name"`
	Number   int       `json:"number"` // in the list
	Attempts int       `json:"attempts"`
	Bytes    int64     `json:"bytes"`
	Run      uint64    `json:"run_number,omitempty"` // of "run --capture": the last one under the lock
	Runs     int       `json:"run_count,omitempty"`  // how many are stored
	Host     string    `json:"host"`                 // of the last attempt; empty, as Start, if its disk was full
	Start    time.Time `json:"start,omitzero"`       // the last attempt, by the clock of its host

	last printed.Frame
}

// list lists the jobs with output, in the order of their list.
func (o *logsOptions) list(ctx context.Context, e *Env, src *place.Source, r *printed.Reader) error {
	jobs := map[string]*loggedJob{}
	budget := newFrameBudget(e)
	err := r.Each(func(f printed.Frame) error {
		job := jobs[f.Name]
		if job == nil {
			if !budget.take() {
				return nil
			}
			job = &loggedJob{Name: f.Name, Number: f.Seq}
			jobs[f.Name] = job
		}
		job.add(f)
		return nil
	})
	if err != nil {
		return err
	}
	budget.say("jobs that have printed something are not listed")
	runs, err := listRuns(ctx, e, src)
	if err != nil {
		return err
	}
	var table show.Table
	table.Row("NUMBER", "NAME", "ATTEMPTS", "BYTES", "HOST", "START")
	for _, job := range append(sortedJobs(jobs), runs...) {
		if o.JSON {
			if err := e.PrintLine(job); err != nil {
				return err
			}
			continue
		}
		began := ""
		if !job.Start.IsZero() {
			began = job.Start.Local().Format(time.DateTime)
		}
		table.Row(job.number(), console.Label(job.Name), fmt.Sprint(job.Attempts), fmt.Sprint(job.Bytes), show.Dash(job.Host), show.Dash(began))
	}
	switch {
	case len(jobs)+len(runs) == 0:
		return o.reportEmpty(ctx, e, src, "no job in %s has printed anything that is kept here")
	case o.JSON:
		return nil
	}
	return table.Print(e.Env)
}

// memoryBudget bounds the memory of an index, because other users may have written the entries.
type memoryBudget struct {
	env        *Env
	left, over int
}

// newFrameBudget limits the memory to less than 1 GiB.
func newFrameBudget(e *Env) *memoryBudget { return &memoryBudget{env: e, left: 1 << 21} }

func (r *memoryBudget) take() bool {
	if r.left--; r.left < 0 {
		r.over++
	}
	return r.left >= 0
}

func (r *memoryBudget) say(what string) {
	if r.over > 0 {
		r.env.Say("warning: %d %s, for more do not fit into memory", r.over, what)
	}
}

// number returns the job's number in its list, or that of the run.
func (j *loggedJob) number() string {
	if j.Run > 0 {
		return fmt.Sprintf("run %d", j.Run)
	}
	return fmt.Sprint(j.Number)
}

func (j *loggedJob) add(f printed.Frame) {
	j.Bytes += int64(f.Size)
	if j.Attempts == 0 || !sameAttempt(j.last, f) {
		j.Attempts++
	}
	if j.last = f; !f.Began.Before(j.Start) {
		j.Host, j.Start = f.Host, f.Began.UTC()
	}
}

func sortedJobs(jobs map[string]*loggedJob) []*loggedJob {
	all := make([]*loggedJob, 0, len(jobs))
	for _, job := range jobs {
		all = append(all, job)
	}
	slices.SortFunc(all, func(a, b *loggedJob) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), strings.Compare(a.Name, b.Name))
	})
	return all
}
