package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/printed"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

// show prints the output of jobs, with a heading for each if there are several.
func (o *logsOptions) show(ctx context.Context, e *Env, src *place.Source, r *printed.Reader, jobs []shownJob) error {
	frames := map[string][]printed.Frame{}
	for _, job := range jobs {
		if !job.captured {
			frames[job.name] = nil
		}
	}
	budget := newFrameBudget(e)
	each := r.Each
	if len(frames) == 0 {
		each = func(func(printed.Frame) error) error { return nil }
	}
	err := each(func(f printed.Frame) error {
		if all, asked := frames[f.Name]; asked && budget.take() {
			frames[f.Name] = append(all, f)
		}
		return nil
	})
	if err != nil {
		return err
	}
	budget.say("pieces of what the jobs have printed are left out")
	p, none := newFramePrinter(e, r), []error(nil)
	for _, job := range jobs {
		of := frames[job.name]
		if len(of) == 0 && !o.failed && !job.captured && !o.number.Given {
			none = append(none, nothingOf(job.name, r.Dir))
			continue
		}
		if o.failed || len(jobs) > 1 {
			if err := p.begin(job.title); err != nil {
				return err
			}
		}
		if job.captured || o.number.Given {
			err = o.showRun(ctx, e, src, p, job.name)
			if len(jobs) > 1 && console.ExitCode(err) == console.ExitNotDone {
				none, err = append(none, err), nil // other locks may have that run
			}
		} else {
			p.reader = r
			err = p.printAll(of)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(none...)
}

// shownJob is a job whose output is printed, with its heading.
type shownJob struct {
	name, title string
	captured    bool // it names a lock with captured runs
}

func shownByName(names []string) (jobs []shownJob) {
	for _, name := range names {
		jobs = append(jobs, shownJob{name: name, title: console.Label(name)})
	}
	return jobs
}

// shownFailed returns the jobs whose last attempt failed, in list order.
func shownFailed(ctx context.Context, src *place.Source) (jobs []shownJob, err error) {
	ledger, err := place.Ability[source.Ledger](src, "logs --failed", source.TraitResults)
	if err != nil {
		return nil, err
	}
	names, err := ledger.Results(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range show.ReadResults(ctx, ledger, names, false, nil).List {
		if r.State != show.ResultDone && r.State != show.StateUnknown {
			jobs = append(jobs, shownJob{name: r.Name, title: fmt.Sprintf("%s: failed (exit %s on %s)", console.Label(r.Name), r.ExitCell(), r.Host)})
		}
	}
	return jobs, nil
}

func nothingOf(name string, kept *fslock.Logs) error {
	text := fmt.Sprintf("no output of a job %q is stored here; \"multilock logs\" without a name lists the jobs with output", name)
	if kept != nil {
		if places := kept.Elsewhere(); len(places) > 0 {
			text += ". The jobs of a batch printed into " + strings.Join(places, ", ")
		}
	}
	return &console.CodedError{Code: console.ExitNotDone, Text: text}
}

// printAll prints a job's attempts in order, by the clocks of their hosts.
func (p *framePrinter) printAll(frames []printed.Frame) error {
	slices.SortStableFunc(frames, func(a, b printed.Frame) int {
		return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Host, b.Host))
	})
	for _, f := range frames {
		if err := p.print(f); err != nil {
			return err
		}
	}
	return nil
}

// framePrinter prints frames unchanged, with a header before each attempt.
type framePrinter struct {
	env    *Env
	reader *printed.Reader
	last   printed.Frame
	rest   bool // the last frame ended without a newline
}

func newFramePrinter(e *Env, r *printed.Reader) *framePrinter {
	return &framePrinter{env: e, reader: r}
}

// begin starts another job.
func (p *framePrinter) begin(title string) error {
	err := p.header("==> " + console.Harmless(title) + " <==\n")
	p.last, p.rest = printed.Frame{}, false
	return err
}

// header prints a line of its own.
func (p *framePrinter) header(text string) error {
	if p.rest {
		text = "\n" + text
	}
	return p.write(p.env.Stdout, []byte(text))
}

func (p *framePrinter) print(f printed.Frame) error {
	data, err := p.reader.Content(f)
	if err != nil {
		return err
	}
	p.env.Await()
	if p.last.Seq > 0 && !sameAttempt(p.last, f) {
		if err := p.header(logHeader(f.Host, f.Attempt, f.Began.Local())); err != nil {
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

func (p *framePrinter) write(to *os.File, data []byte) error {
	if err := console.Pass(to, data); err != nil {
		return fmt.Errorf("print the output of the job: %w", err)
	}
	return nil
}

func sameAttempt(a, b printed.Frame) bool {
	return a.Attempt == b.Attempt && a.Host == b.Host && a.Began.Equal(b.Began)
}

const (
	// followPace is the polling interval. To limit the load, the result is not read again for
	// followShare times as long as the last read took.
	followPace  = time.Second
	followShare = 10
)

// followJob prints a job's past output, and new output until the job has a final result.
func (o *logsOptions) followJob(ctx context.Context, e *Env, src *place.Source, k logStore) error {
	ledger, err := place.Ability[source.Ledger](src, "logs --follow", source.TraitResults)
	if err != nil {
		return err
	}
	ctx, stop := interrupted(ctx)
	defer stop()
	if err := checkFollowed(ctx, src, ledger, o.names[0]); err != nil {
		return err
	}
	f := &following{options: o, env: e, store: k}
	defer f.close()
	var rest time.Time
	for {
		final := false
		if start := time.Now(); !start.Before(rest) {
			if final, err = isFinal(ctx, ledger, o.names[0]); err != nil {
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

// interrupted returns a context that a signal cancels.
func interrupted(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := console.Listen(func(sig os.Signal) {
		if sig == syscall.SIGINT || sig == syscall.SIGTERM || sig == syscall.SIGHUP {
			cancel(console.Signalled(sig))
		}
	})
	return ctx, func() { stop(); cancel(nil) }
}

// following is the state of followJob.
type following struct {
	options *logsOptions
	env     *Env
	store   logStore
	dir     *fslock.Logs // nil until a job has printed something
	printer *framePrinter
}

func (f *following) more() error {
	if f.dir == nil {
		dir, err := f.store.FindLogs()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		f.dir, f.printer = dir, newFramePrinter(f.env, logsReader(f.env, dir))
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
		_ = f.dir.Close() // directories have nothing to flush
	}
}

// isFinal reports whether a job has a final result.
func isFinal(ctx context.Context, ledger source.Ledger, name string) (bool, error) {
	found, err := joblist.Find(ctx, ledger, []string{name}, nil)
	if placed, listed := found[name]; listed || err != nil {
		return placed.Final(), err
	}
	r, err := ledger.Result(ctx, name)
	return r.Final || r.Foreign != "", ignoreNoResult(err)
}
