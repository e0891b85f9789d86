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
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

type logsOptions struct {
	common
	follow bool
	joblog bool
	failed bool
}

// Logs is the command "logs".
func Logs(e *Env) *cli.Command {
	o := &logsOptions{}
	return &cli.Command{
		Name:      "logs",
		Usage:     "show what the jobs of a batch have printed",
		ArgsUsage: "-g GROUP [options] [NAME...]",
		Description: `Shows what the jobs of a batch have printed.

Prints what the job NAME has printed, of all its attempts and on all hosts,
the older first, as it was. On a terminal all but text is masked: to see colors, try
"multilock logs NAME | less -R". Between two attempts is a line "=== attempt N on HOST at TIME". Of "batch --separate" the job's
standard error goes to the standard error. With --follow it goes on until the job has a
final result; what a job prints on another host shows after some seconds.

Several names get a line "==> NAME <==" each before what they have printed. With --failed
it is shown of all jobs that failed, those that are to be tried again among them.

Without NAME it lists the jobs that have printed anything. With --json, one object per line.

With --joblog it lists how all jobs ended that have a result, in GNU parallel's format,
with their names in the place of their commands.

What jobs print is kept with the locks, unless "batch --logs" or --results say otherwise,
or the locks do not live in a directory. Exits with 1 if nothing is kept of NAME.`,
		Flags:  e.Flags("logs", options.Values{"follow": &o.follow, "failed": &o.failed, "joblog": &o.joblog}),
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
	k, with := src.Locks.(logStore)
	if !with {
		return console.Usagef("logs", "this source has no place for what jobs print: see the directory of batch --logs, or multilock-logs/%s where the batch was started", fileName(src.Place.Group))
	}
	if o.follow {
		return o.followJob(ctx, e, src, k)
	}
	jobs, err := shownByName(o.names), error(nil)
	if o.failed {
		jobs, err = shownFailed(ctx, src)
	}
	if err != nil {
		return err
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
	return o.show(e, r, jobs)
}

// reportEmpty says why nothing is listed: nothing has run, or otherwise.
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
		otherwise = "nothing has run in %s, as far as results tell; check -d and -g if you expected jobs there"
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
	Host     string    `json:"host"`  // of the last attempt
	Began    time.Time `json:"began"` // the last attempt, by the clock of its host

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
	var table show.Table
	table.Row("NUMBER", "NAME", "ATTEMPTS", "BYTES", "HOST", "BEGAN")
	for _, job := range sortedJobs(jobs) {
		if o.JSON {
			if err := e.PrintLine(job); err != nil {
				return err
			}
			continue
		}
		table.Row(fmt.Sprint(job.Number), console.Label(job.Name), fmt.Sprint(job.Attempts), fmt.Sprint(job.Bytes), job.Host, job.Began.Local().Format(time.DateTime))
	}
	switch {
	case len(jobs) == 0:
		return o.reportEmpty(ctx, e, src, "no job of a batch in %s has printed anything that is kept here")
	case o.JSON:
		return nil
	}
	return table.Print(e.Env)
}

// memoryBudget bounds the memory of an index, whose entries other users may have written.
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

func (j *loggedJob) add(f printed.Frame) {
	j.Bytes += int64(f.Size)
	if j.Attempts == 0 || !sameAttempt(j.last, f) {
		j.Attempts++
	}
	if j.last = f; !f.Began.Before(j.Began) {
		j.Host, j.Began = f.Host, f.Began.UTC()
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
