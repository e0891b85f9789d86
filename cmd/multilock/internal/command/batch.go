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
	"github.com/multilock/go/lockgroup/batch"
	"github.com/multilock/go/multilock/source"
)

// batchOptions is what "batch" was asked to do.
type batchOptions struct {
	common
	holding
	disclosure
	limits
	jobs       console.Number
	memory     memorySize
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
	args       []string // the list itself, if it stands on the command line
	argFiles   fileList
	colsep     *regexp.Regexp
	header     string
	again      bool // --retry-failed
	add        bool
}

// Batch runs a list of jobs.
func Batch(e *Env) *cli.Command {
	o := &batchOptions{}
	return &cli.Command{
		Name:      "batch",
		Usage:     "run a list of jobs, each once, on any number of hosts",
		ArgsUsage: "-g GROUP [options] FILE",
		Description: `Runs each line of FILE (NAME<TAB>COMMAND, or COMMAND) once over all hosts that
are given the same list. Started again, it goes on where it stopped.

   multilock -d /shared -g convert batch -j 8 --retries 2 jobs.txt
   multilock -d /shared -g convert logs --failed     what the failed ones said
   multilock -d /shared -g convert clean --results   forget all, for a new start

FILE - is the standard input; /bin/sh runs the lines. Hosts that are given the list in the
same group may start at the same time or later. The group has to be named: by -g, MULTILOCK_GROUP or a configuration file.
All lines are NAME<TAB>COMMAND, or all are a command alone, which is then called by its
number. Empty lines and lines that begin with # are skipped. A byte order mark at the
beginning, and the CR at the ends of all lines, are left out with a warning; a list in which
only some lines have one is refused, and so is a command of 128 KiB or more. A job that
needs a tab in a list without names, a CR, or several lines fits into a list of --null:

   printf '%s\0%s\0' one './convert "a b"' two ./join |
      multilock -d /shared -g G batch --null -

There each job is NAME NUL COMMAND NUL, NAME may be empty, and no byte has another meaning.
A line BARRIER divides the list: no job behind it is begun, on any host, before all jobs
above it have succeeded. If one of them fails for good, what stands behind is not run, and
the exit code is 1. (A program of that name is called with a space before it.)
With --shell, or a line SHELL bash above all jobs, another shell runs the lines, on all
hosts. A pipe succeeds when its last command does: with --shell 'bash -o pipefail' only
when all of them do.
Or the list is made of a command and values:

   multilock -d /shared -g convert batch -j 8 'convert {} {}.png' ::: *.gif

{} is the value, quoted for the shell (so write no quotes around it), {.} without its
extension, {/} its base name, {//} its directory, {/.} the base name without extension,
{#} the job's number, {##} the number of jobs. Without any of them the value comes last.
Several ::: make all combinations, with {1}, {2.} ... for the value of each; :::+ links a
list to the one before it, value by value. :::: FILE and --arg-file FILE read values, one
on each line; --colsep splits each into columns {1}, {2} ..., and with --header : the first
value of a list is the name of its column:

   multilock -d /shared -g sizes batch --header : 'resize {img} {w}' \
      ::: img a.png b.png ::: w 64 128

Hosts can join and leave at any time, and the jobs of one that dies, or stands still for
longer than --ttl, are taken over by the others. Of those that have ended there a few
may run again, because they were not recorded yet: on average less than one for every
eight of -j; of jobs that take less than two seconds, those that ended in the last
quarter of one. Where multilock alone stood still, so may those that ended meanwhile, -j
at most. Started again it goes on where it stopped: what is done is not run again, until
"multilock clean --results", and what has failed for good neither, until --retry-failed.
A list that differs from the one that the group was given first is refused. With --add
it may continue that one:

   multilock -d /shared -g convert batch -j 8 --add longer.txt

Hosts that were given the shorter one go on with that.

A job finds MULTILOCK_NAME, MULTILOCK_GROUP, MULTILOCK_SEQ (its number in the list),
MULTILOCK_ATTEMPT, MULTILOCK_SLOT and MULTILOCK_TOKEN in its environment; its standard input
is empty. The slot is a number from 1 to -j that no other job of this multilock has at the
time: CUDA_VISIBLE_DEVICES=$((MULTILOCK_SLOT - 1)) gives each job a GPU of its own.
Neighbouring jobs, 64 at most, are claimed with one lock, and share its token.

What it prints is kept with the locks, of many jobs in one file, and "multilock logs NAME"
shows it, --follow while it runs. Or it is in NAME.log of the directory that --logs names;
or, standard output and error apart, in NAME/stdout and NAME/stderr of that of --results.
A job ends with its shell: what that leaves in the background cannot print any more, and
mostly dies of SIGPIPE when it tries. Give a process that is to outlive its job an output
of its own: serve >serve.log 2>&1 &
A job that succeeded, but of whose output a part could not be written, is done, is not
run again, and makes the exit code 1, now and in later runs (--output).

The directory of --logs or --results, and the file of --joblog, may be where others can
write, too: no link is followed there, and only a file of yours is written to. Where nobody
else can write, a link, a pipe or a device does as well. Root runs no FILE that others may
write to.

Interrupted once it takes no more jobs and waits for those that run; twice it ends
them, and they will be run again. So will one that fails after a SIGTERM, for schedulers
send that to the jobs, too, or that dies of a signal to end (or exits with its code,
128+n) up to a second before multilock gets one. What a job leaves in the background is
ended before its lock is released if it was told to end; else it is left alone.

A line NEEDS cpus=4 mem=8G says what each of the jobs below it takes: of the N of -j, of
which a job takes one otherwise, and of --mem. As long as there is not enough of it for the
job whose turn it is, no other begins on this host. (NEEDS alone: one again, and no memory.)
With --load and --memfree this host begins no job while others, or what runs already, keep
it busy, and then one, a second later two, and so on. A job that runs is left alone; what
this host has claimed and does not begin goes to hosts that have nothing to do.

` + console.ExitTable,
		Flags: e.Flags("batch", options.Values{
			"jobs": &o.jobs, "mem": &o.memory, "needs": &o.needs, "load": &o.load, "memfree": &o.memFree, "retries": &o.retries, "max-runtime": &o.timeout, "grace": &o.grace,
			"retry-failed": &o.again, "add": &o.add, "halt": &o.halt, "order": &o.order, "shell": &o.shell, "null": &o.null, "fence": &o.fence, "dry-run": &o.dryRun,
			"logs": &o.logs, "results": &o.results, "separate": &o.separate, "print": &o.print, "tag": &o.tag, "output": (*string)(&o.output), "joblog": &o.joblog,
			"ttl": &o.TTL, "max-age": &o.MaxAge, "poll": &o.Poll, "probe": &o.Probe, "label": &o.label, "redact": &o.redact,
			"retry-on": &o.retryOn, "retry-delay": &o.retryDelay, "delay": &o.delay, "arg-file": &o.argFiles, "colsep": options.Reader(o.readColsep), "header": &o.header,
		}),
		Action: action(e, &o.common, o.read, func(ctx context.Context, src *place.Source) error { return o.run(ctx, e, src) }),
	}
}

// fileList collects the files of an option that may be given several times.
type fileList []string

// Set adds a file.
func (l *fileList) Set(text string) error { *l = append(*l, text); return nil }

func (o *batchOptions) readColsep(text string) (err error) {
	o.colsep, err = regexp.Compile(text)
	return err
}

// read finds what contradicts itself, beyond the relations between options.
func (o *batchOptions) read(c *cli.Context) error {
	const name = "batch"
	o.list = c.Args().First()
	if len(o.argFiles) > 0 || slices.ContainsFunc(c.Args().Slice(), isMark) {
		o.args = c.Args().Slice()
	}
	o.useTTL(&o.Place)
	switch {
	case len(o.args) > 0 && o.null:
		return console.Usagef(name, "--null is for a list in a file")
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

// run reads the list and works through it.
func (o *batchOptions) run(ctx context.Context, e *Env, src *place.Source) error {
	if err := o.checkAbilities(src); err != nil {
		return err
	}
	o.tellOneHost(e, src)
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

// Of a list nothing becomes garbage, and little is allocated beside it. Beside a long one
// memory is collected early, which costs hardly any time then, and much less room; beside
// a short one so seldom that the jobs do not wait for it.
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
	lock, err := o.options(e, src, "batch", e.Say)
	if err != nil {
		return errors.Join(err, r.close())
	}
	b, err := batch.New(src.Locks, r.jobs(), batch.Options{
		TTL: lock.TTL, Poll: lock.Poll, StalePolicy: lock.StalePolicy, User: o.User, Batch: lock.Batch, Processes: true,
		Workers: o.workers(), Retries: o.retries.Value, RetryOn: o.retryOn, RetryDelay: o.retryDelay.Value, Delay: o.delay.Value, Halt: o.halt.Halt, Order: map[string]batch.Order{"random": batch.OrderRandom}[o.order], Busy: o.busy(e.Say), Fence: o.fence,
		Barriers: list.barriers, Needs: list.needs.needs, Shell: list.shell.String(), Add: o.add, Label: o.label,
		Memory: int64(list.memory), //nolint:gosec // no host has more
	})
	if err != nil {
		return errors.Join(err, r.close())
	}
	start := time.Now()
	sigs := catchStops(ctx, e, b.Drain)
	r.told = sigs.jobsTold()
	stop := show.StartBatchProgress(ctx, e.Env, o.progress(), b)
	report, err := b.Run(sigs.ctx)
	stop()
	err = sigs.release(err)
	err = halted(o.output.join(errors.Join(o.hinted(err), r.close()), report.Incomplete))
	view := viewOfBatch(o, src, report, time.Since(start), err)
	return view.print(e, o)
}

// progress is none where the jobs' own lines are to be seen.
func (o *batchOptions) progress() console.Output {
	out := o.Output
	out.Quiet = out.Quiet || o.print || o.tag
	return out
}

// checkAbilities finds what the source cannot do that a batch needs.
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

// hinted says what to do about another list.
func (o *batchOptions) hinted(err error) error {
	var differs *batch.ManifestError
	if errors.As(err, &differs) {
		continued := !o.add && mayContinue(differs)
		if differs.Line > 0 {
			differs.Theirs, differs.Ours = o.differ(differs.Theirs, differs.Ours)
		}
		if continued {
			return fmt.Errorf("%w; if this list is to continue that one, say --add", err)
		}
		return fmt.Errorf("%w; choose another group with -g, or forget that list and what was done of it: %s",
			err, o.Command("clean", "--results"))
	}
	return err
}

// mayContinue says of another list that it could be the beginning of this one: it ends sooner, or
// its jobs have the same numbers with fewer digits.
func mayContinue(differs *batch.ManifestError) bool {
	theirs, theirCommand, _ := strings.Cut(differs.Theirs, "\t")
	ours, command, _ := strings.Cut(differs.Ours, "\t")
	return differs.Line > 0 && (differs.Theirs == "" || len(ours) > len(theirs) && command == theirCommand && strings.TrimLeft(ours, "0") == strings.TrimLeft(theirs, "0"))
}

// halted gives the end of a batch its exit code if that was halted: what it was to wait
// for may be a success.
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

// haltPolicy is a flag's value, in GNU parallel's words: WHEN,WHAT=HOWMANY.
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

// stopSignals ends a batch: the first SIGINT or SIGTERM lets it take no more jobs,
// the second ends those that run, and so does at once what says that the terminal
// is gone or that there is no time.
type stopSignals struct {
	ctx    context.Context //nolint:containedctx // the batch's lifetime
	cancel context.CancelCauseFunc
	stop   func()
	first  error

	told, toldAll chan struct{} // closed by the first signal, and by the first SIGTERM if it is that
}

func catchStops(ctx context.Context, e *Env, drain func()) *stopSignals {
	s := &stopSignals{told: make(chan struct{}), toldAll: make(chan struct{})}
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
		close(s.told)
	}
	if first && (sig == syscall.SIGINT || sig == syscall.SIGTERM) {
		drain()
		if sig == syscall.SIGTERM {
			close(s.toldAll)
		}
		e.Say("taking no more jobs, and waiting for those that run here; once more ends them")
		return
	}
	s.cancel(s.first)
	e.Say("ending the jobs that run here; they will be run again")
}

// jobsTold is when the jobs were told to end, too. Schedulers and service managers send
// SIGTERM to all processes of an allocation or a service; SIGINT is for us, whose jobs
// are not in the foreground of the terminal.
func (s *stopSignals) jobsTold() runner.Told { return runner.Told{Any: s.told, Job: s.toldAll} }

// release lets signals have their default effect again. A batch that was drained
// was ended by the signal.
func (s *stopSignals) release(err error) error {
	s.stop()
	s.cancel(nil)
	if errors.Is(err, batch.ErrDrained) && s.first != nil {
		return s.first
	}
	return err
}
