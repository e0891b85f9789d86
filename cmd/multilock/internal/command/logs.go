package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/printed"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/cmd/multilock/job"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

type logsOptions struct {
	common
	follow bool
	joblog bool
	names  []string
}

// Logs shows what jobs have printed.
func Logs(e *Env) *cli.Command {
	o := &logsOptions{}
	return &cli.Command{
		Name:      "logs",
		Usage:     "show what the jobs of a batch have printed",
		ArgsUsage: "[NAME]",
		Description: `Prints what the job NAME of a batch has printed, of all its attempts and on all hosts,
the older first, as it was: to see it on a terminal, "multilock logs NAME | less". Between
two attempts is a line "=== attempt N on HOST at TIME". Of "batch --separate" the job's
standard error goes to the standard error. With --follow it goes on until the job has a
final result; what a job prints on another host shows after some seconds.

Without NAME it lists the jobs that have printed anything. With --json, one object per line.

With --joblog it lists how all jobs ended that have a result, in GNU parallel's format,
with their names in the place of their commands.

What jobs print is kept with the locks, unless "batch --logs" or --results say otherwise,
or the locks do not live in a directory. Exits with 1 if nothing is kept of NAME.`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Destination: &o.follow, DisableDefaultText: true, Usage: "print what comes, until the job has a final result"},
			&cli.BoolFlag{Name: "joblog", Destination: &o.joblog, DisableDefaultText: true, Usage: "print GNU parallel's --joblog of the whole group, from the results"},
		},
		Action: action(e, &o.common, o.check, func(ctx context.Context, src *place.Source) error { return o.run(ctx, e, src) }),
	}
}

func (o *logsOptions) check(c *cli.Context) error {
	const name = "logs"
	o.names = namesAsked(c)
	switch {
	case len(o.names) > 1:
		return console.Usagef(name, "name one job")
	case o.joblog && (o.follow || o.JSON || len(o.names) > 0):
		return console.Usagef(name, "--joblog is about all jobs, and has a form of its own")
	case o.follow && len(o.names) == 0:
		return console.Usagef(name, "--follow: name a job")
	case o.JSON && len(o.names) > 0:
		return console.Usagef(name, "--json is for the list; what a job has printed is printed as it was")
	}
	return nil
}

func (o *logsOptions) run(ctx context.Context, e *Env, src *place.Source) error {
	if o.joblog {
		return printJoblog(ctx, e, src)
	}
	k, with := src.Locks.(keeper)
	if !with {
		return console.Usagef("logs", "this source has no place for what jobs print: see the directory of batch --logs, or multilock-logs/%s where the batch was started", fileName(src.Place.Group))
	}
	if o.follow {
		return o.followJob(ctx, e, src, k)
	}
	dir, err := k.FindLogs()
	if errors.Is(err, fs.ErrNotExist) {
		return o.nothing()
	}
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // a directory
	r := o.reader(e, dir)
	if len(o.names) == 0 {
		return o.list(e, r)
	}
	return o.show(e, r)
}

func (o *logsOptions) reader(e *Env, dir *fslock.Logs) *printed.Reader {
	return &printed.Reader{Dir: dir, LeftOut: func(err error) { e.Say("warning: %v", err) }}
}

func (o *logsOptions) nothing() error {
	if len(o.names) == 0 {
		return nil
	}
	return &console.CodedError{Code: console.ExitNotDone, Text: fmt.Sprintf("nothing is kept of what a job %q has printed", o.names[0])}
}

// show prints the attempts at one job, the older first, as far as the clocks of their
// hosts tell.
func (o *logsOptions) show(e *Env, r *printed.Reader) error {
	var frames []printed.Frame
	err := r.Each(func(f printed.Frame) error {
		if f.Name == o.names[0] {
			frames = append(frames, f)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(frames) == 0 {
		return o.nothing()
	}
	slices.SortStableFunc(frames, func(a, b printed.Frame) int {
		return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Host, b.Host))
	})
	p := newFramePrinter(e, r)
	for _, f := range frames {
		if err := p.print(f); err != nil {
			return err
		}
	}
	return nil
}

// framePrinter prints frames as they were printed, and separates the attempts.
type framePrinter struct {
	env    *Env
	reader *printed.Reader
	last   printed.Frame
	rest   bool // the last one ended within a line
}

func newFramePrinter(e *Env, r *printed.Reader) *framePrinter {
	return &framePrinter{env: e, reader: r}
}

func (p *framePrinter) print(f printed.Frame) error {
	data, err := p.reader.Content(f)
	if err != nil {
		return err
	}
	p.env.Await()
	if p.last.Seq > 0 && !sameAttempt(p.last, f) {
		header := logHeader(f.Host, f.Attempt, f.Began.Local())
		if p.rest {
			header = "\n" + header
		}
		if err := p.write(p.env.Stdout, []byte(header)); err != nil {
			return err
		}
	}
	p.last, p.rest = f, data[len(data)-1] != '\n'
	to := p.env.Stdout
	if f.Stream == printed.Err {
		to = p.env.Stderr
	}
	return p.write(to, data)
}

func (p *framePrinter) write(to io.Writer, data []byte) error {
	if _, err := to.Write(data); err != nil {
		return fmt.Errorf("print the output of the job: %w", err)
	}
	return nil
}

func sameAttempt(a, b printed.Frame) bool {
	return a.Attempt == b.Attempt && a.Host == b.Host && a.Began.Equal(b.Began)
}

const (
	// followPace is how often is looked for more, and followShare how many times as long
	// as it took to ask for the result that is left alone.
	followPace  = time.Second
	followShare = 10
)

// followJob prints what comes until the job has a final result, and what came before that.
func (o *logsOptions) followJob(ctx context.Context, e *Env, src *place.Source, k keeper) error {
	ledger, err := place.Ability[source.Ledger](src, "logs --follow", source.TraitResults)
	if err != nil {
		return err
	}
	ctx, stop := interrupted(ctx)
	defer stop()
	f := &following{options: o, env: e, keeper: k}
	defer f.close()
	var rest time.Time
	for {
		final := false
		if start := time.Now(); !start.Before(rest) {
			if final, err = isFinal(ctx, ledger, o.names[0], f.seq()); err != nil {
				return err
			}
			rest = time.Now().Add(followShare * time.Since(start))
		}
		if err := f.more(); err != nil || final {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(followPace):
		}
	}
}

// interrupted ends a context with a signal.
func interrupted(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := console.Listen(func(sig os.Signal) {
		if sig == syscall.SIGINT || sig == syscall.SIGTERM || sig == syscall.SIGHUP {
			cancel(console.Signalled(sig))
		}
	})
	return ctx, func() { stop(); cancel(nil) }
}

// following is what was seen of a job's output so far.
type following struct {
	options *logsOptions
	env     *Env
	keeper  keeper
	dir     *fslock.Logs // nil as long as no job has printed
	printer *framePrinter
}

func (f *following) seq() int {
	if f.printer == nil {
		return 0
	}
	return f.printer.last.Seq
}

func (f *following) more() error {
	if f.dir == nil {
		dir, err := f.keeper.FindLogs()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		f.dir, f.printer = dir, newFramePrinter(f.env, f.options.reader(f.env, dir))
	}
	return f.printer.reader.Each(func(frame printed.Frame) error {
		if frame.Name != f.options.names[0] {
			return nil
		}
		return f.printer.print(frame)
	})
}

func (f *following) close() {
	if f.dir != nil {
		_ = f.dir.Close() // a directory
	}
}

// isFinal says whether a job has a result that is final. With its number in the list, if
// that is known, only the chunks are looked at that have had it.
func isFinal(ctx context.Context, ledger source.Ledger, name string, seq int) (bool, error) {
	names, err := ledger.Results(ctx)
	if err != nil {
		return false, err
	}
	names = slices.DeleteFunc(names, func(n string) bool {
		r, chunk := lockgroup.ParseChunkName(n)
		return n != name && (!chunk || seq > 0 && (seq < r.From || seq > r.To))
	})
	var mu sync.Mutex
	final := false
	err = lockgroup.EachResult(ctx, ledger, names, func(n string, r multilock.Result) {
		mu.Lock()
		defer mu.Unlock()
		final = final || n == name && (r.Final || r.Foreign != "")
	})
	return final, err
}

// loggedJob is what "logs --json" prints of a job.
type loggedJob struct {
	Name     string    `json:"name"`
	Number   int       `json:"number"` // in the list
	Attempts int       `json:"attempts"`
	Bytes    int64     `json:"bytes"`
	Host     string    `json:"host"`  // of the last attempt
	Began    time.Time `json:"began"` // that one, by the clock of its host

	last printed.Frame
}

// list lists the jobs that have printed anything, in the order of their list.
func (o *logsOptions) list(e *Env, r *printed.Reader) error {
	jobs := map[string]*loggedJob{}
	err := r.Each(func(f printed.Frame) error {
		job := jobs[f.Name]
		if job == nil {
			job = &loggedJob{Name: f.Name, Number: f.Seq}
			jobs[f.Name] = job
		}
		job.add(f)
		return nil
	})
	if err != nil {
		return err
	}
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
	if o.JSON || len(jobs) == 0 {
		return nil
	}
	return table.Print(e.Env)
}

func (j *loggedJob) add(f printed.Frame) {
	j.Bytes += int64(f.Size)
	if j.Attempts == 0 || !sameAttempt(j.last, f) {
		j.Attempts++
	}
	if j.last = f; !f.Began.Before(j.Began) {
		j.Host, j.Began = f.Host, f.Began
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

// printJoblog prints the results of all jobs in GNU parallel's format. The number of a job
// with a result of its own is not known.
func printJoblog(ctx context.Context, e *Env, src *place.Source) error {
	ledger, err := place.Ability[source.Ledger](src, "logs --joblog", source.TraitResults)
	if err != nil {
		return err
	}
	names, err := ledger.Results(ctx)
	if err != nil {
		return err
	}
	slices.SortStableFunc(names, func(a, b string) int {
		left, _ := lockgroup.ParseChunkName(a)
		right, _ := lockgroup.ParseChunkName(b)
		return cmp.Compare(left.From, right.From)
	})
	if _, err := io.WriteString(e.Stdout, joblogHeader); err != nil {
		return err
	}
	for part := range slices.Chunk(names, 256) {
		texts, errs := make([]string, len(part)), make([]error, len(part))
		show.InParallel(len(part), func(i int) { texts[i], errs[i] = joblogOf(ctx, ledger, part[i]) })
		if err := errors.Join(errs...); err != nil {
			return err
		}
		if _, err := io.WriteString(e.Stdout, strings.Join(texts, "")); err != nil {
			return err
		}
	}
	return nil
}

// joblogOf are the lines of a result.
func joblogOf(ctx context.Context, ledger source.Ledger, name string) (string, error) {
	r, err := ledger.Result(ctx, name)
	if err != nil || r.Foreign != "" {
		return "", ignoreNoResult(err)
	}
	if r.Chunk == nil {
		return joblogLineOf(0, r), nil
	}
	var lines strings.Builder
	for _, one := range r.Chunk.Jobs {
		lines.WriteString(joblogLineOf(one.Number, one.Result(r)))
	}
	return lines.String(), nil
}

func ignoreNoResult(err error) error {
	if errors.Is(err, multilock.ErrNoResult) {
		return nil // forgotten meanwhile
	}
	return err
}

func joblogLineOf(seq int, r multilock.Result) string {
	ended := job.Result{Code: r.Exit, Started: r.Start, Elapsed: r.Duration}
	for s := syscall.Signal(1); r.Signal != "" && s <= maxSignal; s++ {
		if s.String() == r.Signal {
			ended.Signal = s
		}
	}
	return joblogLine(seq, r.By.Host, console.Label(cmp.Or(r.Command, r.Name)), ended, 0)
}

// maxSignal is the last one of Linux.
const maxSignal = 64
