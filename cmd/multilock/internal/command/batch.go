package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/options"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/runner"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/cmd/multilock/job"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/lockgroup/batch"
	"github.com/multilock/go/multilock/source"
)

// batchOptions are the options of "batch".
type batchOptions struct {
	common
	holding
	disclosure
	limits
	jobs       console.Number
	memory     console.Size
	needs      needs
	retries    console.Number
	retryOn    exitCodes
	retryDelay console.Duration
	delay      console.Duration
	timeout    console.Duration
	grace      console.Duration
	halt       haltPolicy
	order      string
	joblog     string
	logs       string
	results    string
	separate   bool
	print      bool
	tag        bool
	output     outputPolicy
	null       bool
	shell      shell
	fence      bool
	dryRun     bool
	list       string
	args       []string // the jobs, if they are given on the command line
	argFiles   repeated
	colsep     *regexp.Regexp
	header     string
	again      bool // --retry-failed
	add        bool
	replace    bool
	redo       repeated
	wait       console.Duration
}

// Batch runs a list of jobs.
func Batch(e *Env) *cli.Command {
	o := &batchOptions{}
	return &cli.Command{
		Name:      "batch",
		Usage:     "run a list of jobs, each once, on any number of hosts",
		ArgsUsage: "-g GROUP [options] FILE",
		Description: `Runs each line of FILE (NAME<TAB>COMMAND, or COMMAND) once across all hosts
that are given the same list. Started again, it continues where it stopped.

   multilock -d /shared -g convert batch -j 8 --retries 2 jobs.txt
   multilock -d /shared -g convert batch -j 8 'convert {} {}.png' ::: *.gif
   multilock -d /shared -g convert logs --failed     output of the failed jobs

A list that differs from the group's list is rejected. --add extends the group's
list, and --replace replaces it:

   multilock -d /shared -g convert batch -j 8 --add longer.txt
   multilock -d /shared -g convert batch -j 8 --replace fixed.txt

Hosts that are running the list pick up both. Details: multilock help batch.`,
		Flags: e.Flags("batch", options.Values{
			"jobs": &o.jobs, "mem": &o.memory, "needs": &o.needs, "load": &o.load, "memfree": &o.memFree, "retries": &o.retries, "max-runtime": &o.timeout, "grace": &o.grace,
			"retry-failed": &o.again, "add": &o.add, "replace": &o.replace, "redo": &o.redo, "wait": &o.wait, "halt": &o.halt, "order": &o.order, "shell": &o.shell, "null": &o.null, "fence": &o.fence, "dry-run": &o.dryRun,
			"logs": &o.logs, "results": &o.results, "separate": &o.separate, "print": &o.print, "tag": &o.tag, "output": (*string)(&o.output), "joblog": &o.joblog,
			"ttl": &o.TTL, "max-age": &o.MaxAge, "poll": &o.Poll, "probe": &o.Probe, "label": &o.label, "redact": &o.redact,
			"retry-on": &o.retryOn, "retry-delay": &o.retryDelay, "delay": &o.delay, "arg-file": &o.argFiles, "colsep": options.Reader(o.readColsep), "header": &o.header,
		}),
		Action: action(e, &o.common, o.read, func(ctx context.Context, src *place.Source) error { return o.run(ctx, e, src) }),
	}
}

// repeated collects the values of an option that may be given several times.
type repeated []string

// Set adds a value.
func (l *repeated) Set(text string) error { *l = append(*l, text); return nil }

func (o *batchOptions) readColsep(text string) (err error) {
	o.colsep, err = regexp.Compile(text)
	return err
}

// read checks what the relations between options do not cover.
func (o *batchOptions) read(c *cli.Context) error {
	const name = "batch"
	o.list = c.Args().First()
	if len(o.argFiles) > 0 || slices.ContainsFunc(c.Args().Slice(), isMark) {
		o.args = c.Args().Slice()
	}
	o.useTTL(&o.Place)
	switch {
	case len(o.args) > 0 && o.null && len(o.argFiles) == 0 && !slices.ContainsFunc(o.args, func(arg string) bool { return strings.HasPrefix(arg, "::::") }):
		return console.Usagef(name, "--null is for jobs or values in a file")
	case len(o.args) == 0 && (o.colsep != nil || o.header != ""):
		return console.Usagef(name, "--colsep and --header are for values: write them after :::, or name a file with --arg-file")
	case len(o.argFiles) > 0 && len(o.args) == 0:
		return console.Usagef(name, "write the command for the values of --arg-file, such as: batch --arg-file FILE 'convert {} {.}.png'")
	case len(o.args) == 0 && c.Args().Len() != 1:
		return console.Usagef(name, "name one file with the jobs, or - for the standard input; or write: COMMAND ::: VALUE...")
	case !o.GroupGiven:
		return console.Usagef(name, "a group has one list of jobs: name it with -g GROUP, one for each list")
	}
	return o.checkHost(name)
}

// run reads the list and runs its jobs.
func (o *batchOptions) run(ctx context.Context, e *Env, src *place.Source) error {
	if err := o.checkAbilities(src); err != nil {
		return err
	}
	o.warnOneHost(e, src)
	debug.SetGCPercent(leastGC)
	list, err := readBatch(ctx, e, src, o)
	if err != nil {
		return err
	}
	debug.SetGCPercent(listGC())
	if o.again {
		if err := o.forgetFailed(ctx, e, src, list.jobs); err != nil {
			return err
		}
	}
	if o.dryRun {
		return foreseeBatch(ctx, e, src, o, list)
	}
	return workThrough(ctx, e, src, o, list)
}

// A list stays allocated, so the garbage collector finds little to free. With a large list it runs early, to
// save memory; with a small one rarely, so that jobs do not wait for it.
const (
	leastGC, mostGC = 25, 400 // percent
	garbage         = 16 << 20
)

func listGC() int {
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	return int(min(max(100*garbage/max(now.HeapAlloc, 1), leastGC), mostGC))
}

func workThrough(ctx context.Context, e *Env, src *place.Source, o *batchOptions, list batchList) error {
	r, err := newBatchRun(e, src, o, list)
	if err != nil {
		return err
	}
	b, err := o.newBatch(e, src, list, r)
	if err != nil {
		return errors.Join(err, r.close())
	}
	start := time.Now()
	sigs := catchStops(ctx, e, b.Drain)
	r.termination = sigs.termination()
	stop := show.StartBatchProgress(ctx, e.Env, o.progress(), b)
	report, err := b.Run(sigs.ctx)
	if err == lockgroup.ErrNotDone { //nolint:errorlint // an error that wraps it says more
		err = &failedError{report.Failed, report.Total}
	}
	stop()
	err = sigs.release(err)
	err = halted(o.output.join(errors.Join(o.hinted(err), r.close()), report.Incomplete))
	view := viewOfBatch(o, src, &r.last, report, time.Since(start), err)
	view.retry = o.retryCommand(e, src)
	return view.print(e, o)
}

func (o *batchOptions) newBatch(e *Env, src *place.Source, list batchList, r *batchRun) (*batch.Batch, error) {
	lock, err := o.options(e, src, "batch", e.Say)
	if err != nil {
		return nil, err
	}
	return batch.New(src.Locks, r.jobs(), batch.Options{
		TTL: lock.TTL, Poll: lock.Poll, StalePolicy: lock.StalePolicy, User: o.User, Batch: lock.Batch, Processes: true,
		Workers: o.workers(), Retries: o.retries.Value, RetryOn: o.retryOn, RetryDelay: o.retryDelay.Value, Delay: o.delay.Value, Halt: o.halt.Halt, Order: map[string]batch.Order{"random": batch.OrderRandom}[o.order], Busy: o.busy(e.Say), Fence: o.fence,
		Barriers: list.barriers, Needs: list.needs.needs, Shell: list.shell.String(), Add: o.add, Label: o.label,
		Memory:  int64(list.memory), //nolint:gosec // no host has more
		Replace: o.replace, Redo: o.redo, Wait: o.wait.Value, Replaced: o.tellReplaced(e), Follow: r.follow,
	})
}

// progress returns the output for progress reports: quiet if the output of jobs is printed.
func (o *batchOptions) progress() console.Output {
	out := o.Output
	out.Quiet = out.Quiet || o.print || o.tag
	return out
}

// checkAbilities rejects a source that lacks an ability that a batch needs.
func (o *batchOptions) checkAbilities(src *place.Source) error {
	err := cmp.Or(
		requireIf[source.Ledger](true, src, "batch", source.TraitResults),
		requireIf[source.ManifestStore](true, src, "batch", source.TraitManifest),
		requireIf[source.Journal](true, src, "batch", source.TraitHistory),
	)
	if err == nil && o.fence {
		err = src.Require("batch: --fence", source.TraitFenceNumbers)
	}
	return err
}

// hinted adds advice to an error about a list that differs from the group's list.
func (o *batchOptions) hinted(err error) error {
	var differs *batch.ManifestError
	switch {
	case errors.As(err, new(*batch.DoneError)):
		return fmt.Errorf("%w; --redo NAME has one run again", err)
	case errors.As(err, new(*batch.BusyError)):
		return fmt.Errorf("%w; use --wait 10m: that host then releases the jobs that it has not begun; or interrupt its batch (Ctrl-C, once), and start it again afterwards", err)
	case errors.Is(err, batch.ErrReplaced):
		return fmt.Errorf("%w; start again with the list that the group has now, or check that list and use --replace", err)
	}
	if errors.As(err, &differs) {
		continued := !o.add && mayContinue(differs)
		if differs.Line > 0 {
			differs.Theirs, differs.Ours = o.differ(differs.Theirs, differs.Ours)
		}
		if continued {
			return fmt.Errorf("%w; to continue that list with this one, use --add", err)
		}
		replace := ""
		if o.IsFiles() {
			replace = "to replace that list with this one, use --replace; or "
		}
		return fmt.Errorf("%w; choose another group with -g; %sdelete that list and its results: %s", err, replace, o.Command("clean", "--results"))
	}
	return err
}

// mayContinue reports whether the group's list could be the beginning of ours: it is shorter, or its jobs
// have the same numbers with fewer digits.
func mayContinue(differs *batch.ManifestError) bool {
	theirs, theirCommand, _ := strings.Cut(differs.Theirs, "\t")
	ours, command, _ := strings.Cut(differs.Ours, "\t")
	return differs.Line > 0 && (differs.Theirs == "" || len(ours) > len(theirs) && command == theirCommand && strings.TrimLeft(ours, "0") == strings.TrimLeft(theirs, "0"))
}

// halted sets the exit code of a batch that --halt ended: it succeeds if it halted at a success, or at a
// number of completed jobs of which none failed.
func halted(err error) error {
	var h *batch.HaltError
	if !errors.As(err, &h) || errors.Is(err, errIncomplete) {
		return err
	}
	if h.Halt.What == batch.HaltSuccess || (h.Halt.What == batch.HaltDone && h.Failed == 0) {
		return &console.CodedError{Code: console.ExitOK, Err: err}
	}
	return &console.CodedError{Code: console.ExitNotDone, Err: err}
}

// haltPolicy is the value of --halt, in GNU parallel's syntax: WHEN,WHAT=HOWMANY.
type haltPolicy struct{ batch.Halt }

func (h *haltPolicy) Set(text string) error {
	if text == "never" {
		h.Halt = batch.Halt{}
		return nil
	}
	when, condition, _ := strings.Cut(text, ",")
	what, howMany, _ := strings.Cut(condition, "=")
	var known bool
	if h.When, known = map[string]batch.HaltWhen{"soon": batch.HaltSoon, "now": batch.HaltNow}[when]; !known {
		return errHalt
	}
	if h.What, known = map[string]batch.HaltWhat{"fail": batch.HaltFail, "success": batch.HaltSuccess, "done": batch.HaltDone}[what]; !known {
		return errHalt
	}
	return h.setNumber(howMany)
}

var errHalt = errors.New("write never, or soon or now, then fail=N, success=N or done=N, such as soon,fail=3 or now,fail=10%")

func (h *haltPolicy) setNumber(text string) (err error) {
	if percent, ok := strings.CutSuffix(text, "%"); ok {
		h.Percent, err = strconv.ParseFloat(percent, 64)
		if err != nil || !(h.Percent > 0 && h.Percent <= 100) {
			return errHalt
		}
		return nil
	}
	h.Number, err = strconv.Atoi(text)
	if err != nil || h.Number < 1 {
		return errHalt
	}
	return nil
}

// stopSignals ends a batch. At the first SIGINT or SIGTERM it starts no more jobs, and at the second it ends
// the running ones. Signals that mean a lost terminal or no time left end them at once.
type stopSignals struct {
	ctx    context.Context //nolint:containedctx // the batch's lifetime
	cancel context.CancelCauseFunc
	stop   func()
	first  error

	any, job chan struct{} // closed by the first signal; job only if that is SIGTERM
}

func catchStops(ctx context.Context, e *Env, drain func()) *stopSignals {
	s := &stopSignals{any: make(chan struct{}), job: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	s.stop = console.Listen(func(sig os.Signal) { s.deliver(e, sig, drain) })
	console.OutliveReaders()
	return s
}

func (s *stopSignals) deliver(e *Env, sig os.Signal, drain func()) {
	if !job.Asks(sig) {
		return
	}
	first := s.first == nil
	s.first = console.Signalled(sig)
	if first {
		close(s.any)
	}
	if first && (sig == syscall.SIGINT || sig == syscall.SIGTERM) {
		drain()
		if sig == syscall.SIGTERM {
			close(s.job)
		}
		e.Say("taking no more jobs, and waiting for those that run here; once more ends them")
		return
	}
	s.cancel(s.first)
	e.Say("ending the jobs that run here; they will be run again")
}

// termination returns the channels that close when this process and when its jobs receive a signal. Schedulers
// and service managers send SIGTERM to all processes of an allocation or a service. SIGINT reaches only this
// process, because its jobs are not in the terminal's foreground.
func (s *stopSignals) termination() runner.Termination {
	return runner.Termination{Any: s.any, Job: s.job}
}

// release restores the default effect of signals. If the batch was drained, the error is the signal's.
func (s *stopSignals) release(err error) error {
	s.stop()
	s.cancel(nil)
	if errors.Is(err, batch.ErrDrained) && s.first != nil {
		return s.first
	}
	return err
}
