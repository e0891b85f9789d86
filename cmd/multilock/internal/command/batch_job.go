package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/outfile"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/printed"
	"github.com/multilock/go/cmd/multilock/internal/runner"
	"github.com/multilock/go/cmd/multilock/job"
	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/lockgroup/batch"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/process"
)

type batchRun struct {
	env         *Env
	src         *place.Source
	opt         *batchOptions
	list        []batch.Job
	shell       shell
	environ     []string
	devNull     *os.File // the null device, stdin of the jobs
	joblog      *joblog
	outputs     outputs
	shown       *printing
	termination runner.Termination
	marks       lockMarks
	last        lastLines
}

func newBatchRun(e *Env, src *place.Source, o *batchOptions, list batchList) (*batchRun, error) {
	r := &batchRun{env: e, src: src, opt: o, list: list.jobs, shell: list.shell, outputs: outputsOf(src, o), environ: append(place.JobEnviron(e.Environ()), "MULTILOCK_GROUP="+o.Group)}
	if o.print || o.tag {
		r.shown = &printing{tag: o.tag, out: e.Stdout, err: e.Stderr}
	}
	var err error
	if r.devNull, err = os.Open(os.DevNull); err != nil {
		return r, err
	}
	if o.joblog != "" {
		r.joblog, err = openJoblog(o.joblog, src.Self.Host)
	}
	return r, err
}

func (r *batchRun) close() error {
	return errors.Join(r.outputs.close(), r.joblog.close(), r.devNull.Close())
}

func (r *batchRun) jobs() []batch.Job {
	work := r.work // evaluate the method value once
	for i := range r.list {
		r.list[i].Work = work
	}
	return r.list
}

// follow prepares a job that another host added or changed.
func (r *batchRun) follow(j batch.Job) batch.Job {
	j.Shown, j.Work = r.opt.line(j.Command), r.work
	return j
}

// work runs one command until it ends.
func (r *batchRun) work(ctx context.Context, a batch.Attempt) error {
	vars := r.variables(a)
	out, err := r.capture(a)
	if err != nil {
		return errors.Join(lockgroup.ErrNotRun, err)
	}
	running, err := runner.Start(ctx, r.spec(a, job.Spec{
		Args: r.shell.args(a.Command), Env: vars, Mark: vars[len(vars)-1], Stdin: r.devNull, Stdout: out.first().writer, Stderr: out.last().writer, Self: r.src.Self,
	}))
	out.started()
	if errors.As(err, new(*runner.NotedError)) {
		r.env.Say("warning: job %q is run again under another lock: %v", a.Name, err)
		err = errors.Join(multilock.ErrUnsure, err) // so that the job is postponed
	}
	if err != nil {
		return errors.Join(lockgroup.ErrNotRun, err, out.finish())
	}
	ended := running.Wait(ctx)
	if errors.As(ended, new(*job.LingeringError)) {
		return errors.Join(lockgroup.ErrLingering, ended, out.finish())
	}
	result := running.Result()
	lost := out.finish()
	if err := r.joblog.add(a.Seq, a.Shown, result, out.size()); err != nil {
		r.env.Say("warning: %v", err)
	}
	if running.Terminated() && result.Code != 0 && !errors.Is(ended, errTimeout) {
		r.env.Say("job %q was terminated; no result is recorded, so it will run again", a.Name)
		return errors.Join(lockgroup.ErrNotRun, errToldToEnd)
	}
	err = exitError(result, ended, lost)
	if err != nil {
		r.last.add(a.Name, out.last().tail)
	}
	return err
}

// capture prepares the capture of an attempt's output: both streams as one, unless they must be separate.
func (r *batchRun) capture(a batch.Attempt) (captures, error) {
	began, streams := time.Now(), []printed.Stream{printed.Out}
	if r.opt.separate || r.opt.results != "" {
		streams = append(streams, printed.Err)
	}
	var logs []openLog
	for _, stream := range streams {
		logs = append(logs, func() (jobLog, error) { return r.outputs.begin(a, began, stream) })
	}
	all, err := captureTo(logs...)
	for i, c := range all {
		c.shown = r.shown.of(a, streams[i])
	}
	return all, err
}

// variables returns the job's environment. The variable that marks its processes comes last.
func (r *batchRun) variables(a batch.Attempt) []string {
	vars := append(make([]string, 0, len(r.environ)+6), r.environ...)
	vars = append(vars, "MULTILOCK_NAME="+a.Name, "MULTILOCK_SEQ="+strconv.Itoa(a.Seq), "MULTILOCK_ATTEMPT="+strconv.Itoa(a.Number), "MULTILOCK_SLOT="+strconv.Itoa(a.Slot))
	if r.opt.fence {
		vars = append(vars, "MULTILOCK_FENCE="+strconv.FormatUint(a.Fence, 10))
	}
	return append(vars, a.Lock.JobEnviron()...)
}

func (r *batchRun) spec(a batch.Attempt, what job.Spec) runner.Spec {
	return runner.Spec{
		Job: what, Lock: a.Lock, Name: a.Name, Again: a.Number > 1, Marks: r.marks.of(a.Lock, r.env.Say), Work: process.Work{Job: a.Seq, Attempt: a.Number, Slot: a.Slot}, Grace: r.opt.grace.Value, OnLost: runner.Term,
		Limit: r.opt.timeout.Value, OverLimit: errTimeout, Termination: r.termination, Recorded: true, Ending: r.ending, Say: r.env.Say,
	}
}

// lockMarks has the marks of shared locks, each while its lock is held.
type lockMarks struct{ byLock sync.Map }

// of returns the marks of a lock, nil if the lock belongs to a single job.
func (m *lockMarks) of(lock *multilock.Lock, say func(string, ...any)) *runner.Marks {
	if _, shared := joblist.ParseChunkName(lock.Record().Name); !shared {
		return nil
	}
	marks, known := m.byLock.LoadOrStore(lock, runner.NewMarks(lock, say))
	if !known {
		context.AfterFunc(lock.Context(), func() { m.byLock.Delete(lock) })
	}
	return marks.(*runner.Marks)
}

var (
	errTimeout = &console.CodedError{Code: console.ExitTimeLimit, Text: "it ran for longer than --max-runtime"}
	// errToldToEnd is the error of a terminated job without a result.
	errToldToEnd = errors.New("it was terminated")
)

// ending reports that a job is being ended because its lock was lost. Other reasons are in its result.
func (r *batchRun) ending(why error) {
	if errors.Is(why, multilock.ErrLost) {
		r.env.Say("%v; ending the job", why)
	}
}

// exitError returns an attempt's error for the batch, with the reason if its output is incomplete.
func exitError(result job.Result, ended, lost error) error {
	if ended != nil && !errors.Is(ended, errTimeout) {
		return ended
	}
	of := resultOf(result, ended)
	exit := lockgroup.ExitError{Code: of.Exit, Signal: of.Signal, Why: of.Why}
	if lost != nil {
		exit.Output = lost.Error()
	}
	if exit == (lockgroup.ExitError{}) {
		return nil
	}
	return &exit
}

// joblog writes a line for each attempt that ended here, in the format of GNU parallel's --joblog.
type joblog struct {
	host string
	file *os.File
}

const joblogHeader = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n"

// openJoblog opens the file for appending, and writes the header to an empty file.
func openJoblog(path, host string) (*joblog, error) {
	f, err := outfile.Append(path)
	if err != nil {
		return nil, fmt.Errorf("open the job log: %w", err)
	}
	info, err := f.Stat()
	if err == nil && info.Size() == 0 {
		_, err = f.WriteString(joblogHeader)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("begin the job log: %w", err), f.Close())
	}
	return &joblog{host, f}, nil
}

// add writes the line with one call, so that lines of several jobs do not mix.
func (l *joblog) add(seq int, command string, r job.Result, received int64) error {
	if l == nil {
		return nil
	}
	if _, err := l.file.WriteString(joblogLine(seq, l.host, command, r, received)); err != nil {
		return fmt.Errorf("write the job log: %w", err)
	}
	return nil
}

// joblogLine formats a line as GNU parallel does, except that times have microseconds: with
// milliseconds, consecutive jobs seem to overlap. As in GNU parallel, a newline in a command
// becomes a NUL, and a job killed by a signal has exit value 0.
func joblogLine(seq int, host, command string, r job.Result, received int64) string {
	code := r.Code
	if r.Signal != 0 {
		code = 0
	}
	started, ran := r.Started.UnixMicro(), r.Elapsed.Microseconds()
	return fmt.Sprintf("%d\t%s\t%d.%06d\t%6d.%06d\t0\t%d\t%d\t%d\t%s\n",
		seq, host, started/1e6, started%1e6, ran/1e6, ran%1e6, received, code, int(r.Signal), strings.ReplaceAll(command, "\n", "\x00"))
}

func (l *joblog) close() error {
	if l == nil {
		return nil
	}
	return l.file.Close()
}
