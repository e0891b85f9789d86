// Package batch works through a list of jobs, on any number of hosts, without anybody who
// hands them out: neighbouring jobs are claimed together, as a chunk, with one lock, and each
// is run to a final result once. What is known of the others only decides which chunk comes
// next: the board is what hosts tell each other of chunks, the feed what they tell of jobs
// where the source keeps no chunks.
package batch

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// Job is one piece of work of a batch.
type Job struct {
	// Name is that of the job's lock and of its result.
	Name string
	// Command says for people what the job does. All hosts must agree about it, for
	// which it is recorded as a whole in the group's manifest.
	Command string
	// Shown is recorded instead wherever this job is told of, Command if it is empty.
	Shown string
	// Work does it. The context is cancelled when that of Run is, or when the lock is
	// lost; an error after that is an interruption, and is not recorded. For errors that
	// say more see lockgroup.WhileHeld; with lockgroup.ErrNotRun, Run ends.
	Work func(ctx context.Context, a Attempt) error
}

// Attempt is one run of a job.
type Attempt struct {
	Name string
	// Seq is the job's place in the list, from 1.
	Seq int
	// Number counts the job's attempts, over all hosts together, from 1.
	Number int
	// Lock is held while the job runs: that of the chunk of the list in which it is, or its
	// own. It is not to be released by the job.
	Lock *multilock.Lock
	// Fence is a number that is larger than any under which the job was run before, with
	// Options.Fence; else 0.
	Fence uint64
}

// Options say how a batch is worked through.
type Options struct {
	// TTL, Poll, StalePolicy, User and Batch are those of the jobs' locks: see multilock.Options.
	TTL, Poll   time.Duration
	StalePolicy multilock.StalePolicy
	User        string
	Batch       source.BatchJob
	// Processes says that jobs start processes: see multilock.ForJob.
	Processes bool
	// Workers is how many jobs this process runs at a time, 1 if 0.
	Workers int
	// Retries is how many more attempts follow a failure, over all hosts together.
	Retries int
	// Busy, if not nil, is asked once a second why this process is to begin no job now, and says
	// "" if it may. As long as there is a reason those that run go on, and what was claimed is
	// given back to others who have nothing to do.
	Busy func() string
	// Halt says when to end before all jobs have been run.
	Halt Halt
	// Order is in which order the jobs are begun.
	Order Order
	// Fence has fencing numbers drawn, one with each lock.
	Fence bool
	// Barriers are the numbers of jobs after which one stands: no job behind it is begun, on
	// any host, before all up to that number have succeeded. All hosts must agree about them.
	Barriers []int
	// Needs are what jobs take of what this host has for them, in the order of the list: of its
	// Workers, and of its Memory. All hosts must agree about them.
	Needs []Needs
	// Shell says for people what runs the commands; "" is what always does. All hosts must agree
	// about it.
	Shell string
	// Memory is how many bytes this host has for jobs; 0 does not limit them.
	Memory int64
	// Label is shown in place of the jobs' commands wherever their results are, if not empty.
	Label string
	// Add lets the list continue the one that the group has: jobs that come behind those are added
	// to it, for whoever is given that list with Add. A host that was given the beginning goes
	// on with that. It needs a source.ManifestGrower.
	Add bool
}

// Order is in which order the jobs of a list are begun.
type Order int

const (
	// OrderList is the list's: exactly, where one host works alone and no attempt fails.
	// Several hosts begin one chunk of the list each, and go on with the next that is free.
	OrderList Order = iota
	// OrderRandom is any.
	OrderRandom
)

// ErrDrained says that a batch was told by Drain to take no more jobs.
var ErrDrained = errors.New("no more jobs are taken")

// Source is what a batch needs of a source.
type Source interface {
	source.Ledger
	source.Journal
	source.ManifestStore
}

// Batch works through a list of jobs together with all others who were given the
// same list in the same group. Each job runs once: under a lock, as often as
// its retries allow, and never again after its result was committed. A process
// that ends before that has not run the job as far as anybody can know; of what ended in
// its last two seconds at most the results may be lost.
//
// Where the source keeps chunks (source.Chunks) the list is divided into them: each is
// claimed with one lock, its jobs are recorded together, and what a host has not begun
// when others have nothing to do it gives back. Elsewhere each job has a lock of its own.
type Batch struct {
	src      Source
	chunks   source.Chunks // nil if each job has a lock of its own
	jobs     []Job
	opt      Options
	grower   source.ManifestGrower // with Options.Add
	sections []int                 // the number of the last job of each section of a list that has grown
	plan     lockgroup.Plan
	start    time.Time
	stops    stops
	board    *board         // with chunks
	recorded *recorded      // with chunks
	feed     *feed          // without
	index    map[string]int // of the jobs by their names, with the feed

	taking, working context.Context //nolint:containedctx // the batch's lifetime: for taking jobs, and for those that run
	under           sync.WaitGroup  // what is claimed, or being claimed

	// hands also guards what is below.
	hands      *hands
	failures   map[int]multilock.Result
	incomplete map[int]multilock.Result // done, and their output is not
	ran        int
	before     int
	takenOver  int
	unread     map[int]bool // chunks of which there is news on the board
	trouble    error        // the first with the news; the batch goes on without them
}

// Run works through a list of jobs: see Batch, New and Batch.Run.
func Run(ctx context.Context, src multilock.Source, jobs []Job, opt Options) (Report, error) {
	b, err := New(src, jobs, opt)
	if err != nil {
		return Report{}, err
	}
	return b.Run(ctx)
}

// New prepares one Run. The error is a *source.InvalidError for options or jobs that
// cannot be, and multilock.ErrUnsupported for a source that is no Source.
func New(src multilock.Source, jobs []Job, opt Options) (*Batch, error) {
	able, ok := src.(Source)
	if !ok {
		return nil, fmt.Errorf("a batch: %w: it keeps no results of jobs, or no history", multilock.ErrUnsupported)
	}
	if opt.Workers == 0 {
		opt.Workers = 1
	}
	if opt.Poll == 0 {
		opt.Poll = multilock.DefaultPoll
	}
	b := &Batch{
		src: able, jobs: jobs, opt: opt, plan: lockgroup.Plan{Retries: opt.Retries},
		failures: map[int]multilock.Result{}, incomplete: map[int]multilock.Result{}, unread: map[int]bool{}, recorded: newRecorded(),
	}
	if err := b.check(); err != nil {
		return nil, err
	}
	if b.grower, ok = src.(source.ManifestGrower); opt.Add && !ok {
		return nil, fmt.Errorf("adding to a list of jobs: %w: the source keeps lists as they are", multilock.ErrUnsupported)
	}
	b.chunks, _ = src.(source.Chunks)
	b.hands = newHands(len(jobs), opt.Barriers)
	b.hands.budget = budget{needs: b.opt.Needs, cpus: opt.Workers, memory: opt.Memory}
	b.divide()
	return b, nil
}

// divide decides what is claimed with one lock each.
func (b *Batch) divide() {
	b.hands.change(func() {
		divided := singles
		if b.hands.serial = b.chunks != nil; b.hands.serial {
			divided = schedule
		}
		b.hands.claims = *newClaims(b.hands.stages.divided(divided, b.sections), b.hands.stages.upTo(), b.opt.Order == OrderRandom)
	})
}

func (b *Batch) check() error {
	if b.opt.Workers < 0 {
		return &source.InvalidError{What: "workers", Got: strconv.Itoa(b.opt.Workers), Why: "must be positive"}
	}
	if b.opt.Poll < 0 {
		return &source.InvalidError{What: "poll", Got: b.opt.Poll.String(), Why: "must be positive"}
	}
	if err := b.plan.Check(); err != nil {
		return err
	}
	if err := b.checkNames(); err != nil {
		return err
	}
	if err := errors.Join(b.checkBarriers(), b.checkNeeds()); err != nil {
		return err
	}
	if strings.ContainsAny(b.opt.Shell, "#\t\n") {
		return &source.InvalidError{What: "shell", Got: b.opt.Shell, Why: "must not contain #, a tab or a newline"}
	}
	return b.opt.Halt.check()
}

// checkNames finds names that cannot be, or are there twice. A list whose names grow costs
// no memory for that.
func (b *Batch) checkNames() error {
	grow := true
	for i, job := range b.jobs {
		grow = grow && (i == 0 || b.jobs[i-1].Name < job.Name)
		if _, chunk := joblist.ParseChunkName(job.Name); chunk {
			return &source.InvalidError{What: "job", Got: job.Name, Why: "chunks of the list are called so; choose another name"}
		}
	}
	if grow {
		return nil
	}
	_, err := b.indexed()
	return err
}

// indexed are the places of the jobs in the list, by their names.
func (b *Batch) indexed() (map[string]int, error) {
	index := make(map[string]int, len(b.jobs))
	for i, job := range b.jobs {
		if first, twice := index[job.Name]; twice {
			return nil, &source.InvalidError{What: "job", Got: job.Name, Why: fmt.Sprintf("is in the list twice, as number %d and number %d", first+1, i+1)}
		}
		index[job.Name] = i
	}
	return index, nil
}

// Run returns when every job of the list has a final result, whoever ran it, or
// when it was halted, drained or ctx ended. It is to be called once.
//
// The error is nil if every job has succeeded, and lockgroup.ErrNotDone if some have
// failed. If not every job has a final result, it is a *HaltError, ErrDrained,
// context.Cause(ctx), or what the source answered; a *ManifestError if the group
// was given another list before; a *BarrierError, which is a lockgroup.ErrNotDone, if
// failures keep jobs behind a barrier from being run. The report is true in every case, as far as it goes.
func (b *Batch) Run(ctx context.Context) (Report, error) {
	b.start = time.Now()
	var stopWork, stopTaking context.CancelCauseFunc
	b.working, stopWork = context.WithCancelCause(ctx)
	defer stopWork(nil)
	b.taking, stopTaking = context.WithCancelCause(b.working)
	defer stopTaking(nil)
	b.stops.begin(stopTaking, stopWork)
	if err := b.join(b.taking); err != nil {
		return b.report(), err
	}
	b.halt()
	b.workThrough()
	return b.report(), b.verdict(ctx)
}

// workThrough has the jobs claimed and run, and exchanges news meanwhile.
func (b *Batch) workThrough() {
	following, giveUp := context.WithCancel(context.WithoutCancel(b.working))
	defer giveUp()
	ended := make(chan struct{})
	var follower, workers sync.WaitGroup
	if b.opt.Busy != nil {
		b.askBusy()
		follower.Go(func() { b.keepGate(ended) })
	}
	follower.Go(func() { b.follow(following, ended) })
	for range b.opt.Workers {
		workers.Go(b.work)
	}
	workers.Go(b.claimAll)
	workers.Go(b.lookAfter)
	workers.Wait()
	b.under.Wait()
	close(ended)
	patience := time.AfterFunc(lastNewsPatience, giveUp)
	defer patience.Stop()
	follower.Wait()
}

func (b *Batch) follow(ctx context.Context, ended <-chan struct{}) {
	if b.chunks != nil {
		b.followBoard(ctx, ended)
		return
	}
	b.followFeed(ctx, ended)
}

// join makes sure that everybody means the same list, and learns what is done.
func (b *Batch) join(ctx context.Context) error {
	if err := b.agree(ctx); err != nil {
		return err
	}
	if err := b.catchUp(ctx); err != nil {
		return err
	}
	b.hands.change(func() { b.before = b.hands.done + b.hands.failed })
	return nil
}

// catchUp learns what is done.
func (b *Batch) catchUp(ctx context.Context) (err error) {
	if b.chunks != nil {
		return b.openBoard(ctx)
	}
	if b.index, err = b.indexed(); err != nil {
		return err
	}
	b.feed = newFeed()
	if err := b.survey(ctx); err != nil {
		return errors.Join(err, b.feed.close())
	}
	return nil
}

// Drain makes Run take no more jobs, and return when those that it runs have
// ended. It may be called at any time.
func (b *Batch) Drain() { b.stops.drain(ErrDrained) }

// verdict is the error of Run.
func (b *Batch) verdict(ctx context.Context) error {
	b.hands.mu.Lock()
	count, blocked := b.hands.counts, b.hands.stages.blocked()
	behind := b.hands.stages.error()
	b.hands.mu.Unlock()
	switch stopped := b.stops.why(); {
	case count.open == 0 && count.failed > 0:
		return lockgroup.ErrNotDone
	case count.open == 0:
		return nil
	case blocked:
		return behind
	case ctx.Err() != nil:
		return context.Cause(ctx)
	default:
		return stopped
	}
}
