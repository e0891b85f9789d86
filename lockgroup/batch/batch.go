// Package batch works through a list of jobs, on any number of hosts, without anybody who
// hands them out: each job is run by the loop of package lockgroup, under its own lock and
// at most once, and what is known of the others only decides which job comes next. The
// queue is what is left to be done, the feed what hosts tell each other.
package batch

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/multilock/go/internal/bounded"
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
	// Lock is held while the job runs. It is not to be released by the job.
	Lock *multilock.Lock
}

// Options say how a batch is worked through.
type Options struct {
	// Options are those of the jobs' locks. Command is each job's own.
	multilock.Options
	// Workers is how many jobs this process runs at a time, 1 if 0.
	Workers int
	// Retries is how many more attempts follow a failure, over all hosts together.
	Retries int
	// Halt says when to end before all jobs have been run.
	Halt Halt
}

// ErrDrained says that a batch was told by Drain to take no more jobs.
var ErrDrained = errors.New("no more jobs are taken")

// Source is what a batch needs of a source.
type Source interface {
	source.Ledger
	source.Journal
	source.ManifestStore
}

// Batch works through a list of jobs together with all others who were given the
// same list in the same group. Each job runs once: under its lock, as often as
// its retries allow, and never again after its result was committed. A process
// that ends before that has not run the job as far as anybody can know.
//
// The list is taken up roughly in its order, but each job at random among the next
// ones, so that hosts seldom meet at one. What the others have done is read from
// the source's history; what that does not tell is learned under the job's lock.
type Batch struct {
	src   Source
	jobs  []Job
	index map[string]int
	opt   Options
	plan  lockgroup.Plan
	start time.Time
	queue *queue
	feed  *feed
	stops stops

	mu         sync.Mutex
	failures   map[int]multilock.Result
	incomplete map[int]multilock.Result // done, and their output is not
	ran        int
	before     int
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
		src: able, jobs: jobs, opt: opt, plan: lockgroup.Plan{Retries: opt.Retries}, index: make(map[string]int, len(jobs)),
		queue: newQueue(len(jobs), opt.Workers), feed: newFeed(), failures: map[int]multilock.Result{}, incomplete: map[int]multilock.Result{},
	}
	if err := b.check(); err != nil {
		return nil, err
	}
	return b, nil
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
	for i, job := range b.jobs {
		if first, twice := b.index[job.Name]; twice {
			return &source.InvalidError{What: "job", Got: job.Name, Why: fmt.Sprintf("is in the list twice, as number %d and number %d", first+1, i+1)}
		}
		b.index[job.Name] = i
	}
	return b.opt.Halt.check()
}

// Run returns when every job of the list has a final result, whoever ran it, or
// when it was halted, drained or ctx ended. It is to be called once.
//
// The error is nil if every job has succeeded, and lockgroup.ErrNotDone if some have
// failed. If not every job has a final result, it is a *HaltError, ErrDrained,
// context.Cause(ctx), or what the source answered; a *ManifestError if the group
// was given another list before. The report is true in every case, as far as it goes.
func (b *Batch) Run(ctx context.Context) (Report, error) {
	b.start = time.Now()
	working, stopWork := context.WithCancelCause(ctx)
	defer stopWork(nil)
	taking, stopTaking := context.WithCancelCause(working)
	defer stopTaking(nil)
	b.stops.begin(stopTaking, stopWork)
	if err := b.join(taking); err != nil {
		return b.report(), err
	}
	b.halt()
	b.workThrough(taking, working)
	return b.report(), b.verdict(ctx)
}

// workThrough has the jobs taken and run, and exchanges news meanwhile.
func (b *Batch) workThrough(taking, working context.Context) {
	following, giveUp := context.WithCancel(context.WithoutCancel(working))
	defer giveUp()
	ended := make(chan struct{})
	var follower, workers sync.WaitGroup
	follower.Go(func() { b.follow(following, ended) })
	for range b.opt.Workers {
		workers.Go(func() { b.work(taking, working) })
	}
	workers.Wait()
	close(ended)
	patience := time.AfterFunc(lastFeedPatience, giveUp)
	defer patience.Stop()
	follower.Wait()
}

// join makes sure that everybody means the same list, and learns what is done.
func (b *Batch) join(ctx context.Context) error {
	ours := encodeManifest(b.jobs)
	theirs, err := bounded.Call(ctx, func(ctx context.Context) ([]byte, error) { return b.src.Publish(ctx, ours) })
	if err != nil {
		return err
	}
	if err := compareManifests(ours, theirs); err != nil {
		return err
	}
	if err := b.survey(ctx); err != nil {
		return errors.Join(err, b.feed.close())
	}
	before := b.queue.count()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.before = before.done + before.failed
	return nil
}

// Drain makes Run take no more jobs, and return when those that it runs have
// ended. It may be called at any time.
func (b *Batch) Drain() { b.stops.drain(ErrDrained) }

// verdict is the error of Run.
func (b *Batch) verdict(ctx context.Context) error {
	count := b.queue.count()
	switch stopped := b.stops.why(); {
	case count.open == 0 && count.failed > 0:
		return lockgroup.ErrNotDone
	case count.open == 0:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	default:
		return stopped
	}
}
