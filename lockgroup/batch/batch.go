// Package batch works through a list of jobs on any number of hosts without a coordinator. A host
// claims neighbouring jobs together, as a chunk, with one lock, and runs each job to one final
// result. It learns which chunks have changed from a progress map, or, if the source keeps none,
// from a listing of the results. Both only save requests: the locks and results decide.
package batch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// Job is a job of a batch.
type Job struct {
	// Name is the name of the job's lock and result.
	Name string
	// Command describes the job for people. It is recorded in the group's manifest, and must be the
	// same on all hosts.
	Command string
	// Shown is recorded instead of Command everywhere else, if not empty.
	Shown string
	// Work runs the job. Its context is cancelled when that of Run is, or when the lock is lost; an
	// error after that is an interruption and is not recorded. See lockgroup.WhileHeld for special
	// errors. lockgroup.ErrNotRun ends Run.
	Work func(ctx context.Context, a Attempt) error
}

// Attempt is one run of a job.
type Attempt struct {
	Name string
	// Command and Shown are those of the job.
	Command, Shown string
	// Seq is the job's number in the list, from 1.
	Seq int
	// Number is the number of the attempt, across all hosts together, from 1.
	Number int
	// Slot is free again when the job ends: from 1 to Options.Workers, each used once at a time in
	// this process.
	Slot int
	// Lock is the lock of the job's chunk, held while the job runs. The job must not release it.
	Lock *multilock.Lock
	// Fence, with Options.Fence, is larger than in any earlier attempt at the job; else 0.
	Fence uint64
}

// Options configure a batch.
type Options struct {
	// TTL, Poll, StalePolicy, User and Batch are those of the jobs' locks: see multilock.Options.
	TTL, Poll   time.Duration
	StalePolicy multilock.StalePolicy
	User        string
	Batch       source.BatchJob
	// Processes means that jobs start processes: see multilock.ForJob.
	Processes bool
	// Workers is how many jobs this process runs at a time, 1 if 0.
	Workers int
	// Retries is how many more attempts follow a failure, across all hosts together.
	Retries int
	// RetryOn are the exit codes that allow another attempt; all but 0 if empty.
	RetryOn []int
	// RetryDelay is the pause before the first retry of a job: see lockgroup.Plan.Pause. Other jobs
	// go on during that. If the process dies, another one retries without it.
	RetryDelay time.Duration
	// Delay is the shortest time between two starts of jobs in this process.
	Delay time.Duration
	// Busy, if not nil, is called once a second. While it returns a reason, this process begins no
	// job; running jobs go on, and idle hosts get the claimed jobs that have not begun.
	Busy func() string
	// Halt defines when to end before all jobs have run.
	Halt Halt
	// Order is the order in which jobs begin.
	Order Order
	// Fence draws a fencing number with each lock.
	Fence bool
	// Barriers are the numbers of jobs with a barrier behind them: no host begins a later job
	// before all jobs up to that number have succeeded. They must be the same on all hosts.
	Barriers []int
	// Needs are the shares of this host's Workers and Memory that jobs take, in the order of the list.
	// They must be the same on all hosts.
	Needs []Needs
	// Shell names the program that runs the commands, for people; "" is the default. It must be the
	// same on all hosts.
	Shell string
	// Memory is how many bytes this host has for jobs, 0 for no limit.
	Memory int64
	// Label, if not empty, is recorded in results instead of the jobs' commands.
	Label string
	// Add appends the jobs beyond the end of the group's list to that list, for all hosts that use Add.
	// A host with a shorter list works on that list, until it reads the rest: see Follow. The source
	// must be a source.ManifestGrower.
	Add bool
	// Replace makes the jobs the group's list: jobs with a known name keep their numbers, new ones are
	// added at the end. Commands of jobs that are done must not change, except of those in Redo, which
	// run again. The source must be a source.ManifestGrower. The error may also be a *DoneError, a
	// *BusyError or ErrReplaced.
	Replace bool
	Redo    []string
	// Wait is how long Replace waits for jobs that other hosts hold. It asks these hosts to give back
	// the jobs that they have not begun.
	Wait time.Duration
	// Replaced, if not nil, is called when the list was replaced.
	Replaced func(Changes)
	// Follow, if not nil, makes Run accept jobs that other hosts add to the list or change in it, at
	// the latest before Run ends. Follow returns a job with what it needs to run here, given its Name
	// and Command. Run accepts no command that a user other than root and this user may have written.
	Follow func(Job) Job
}

// Order is the order in which the jobs of a list begin.
type Order int

const (
	// OrderList is the order of the list: exactly, if one host works alone and no attempt fails. With
	// several hosts, each works on one chunk at a time, and continues with the next free one.
	OrderList Order = iota
	// OrderRandom is a random order.
	OrderRandom
)

// ErrDrained means that Drain ended the batch early.
var ErrDrained = errors.New("no more jobs are taken")

// Source is the interface that a batch needs of a source.
type Source interface {
	source.Ledger
	source.Journal
	source.ManifestStore
}

// Batch works through a list of jobs together with all processes that have the same list in the
// same group. Each job runs under a lock, as often as its retries allow, and never again after its
// final result was committed. A process that crashes may lose the results of its last two seconds;
// those jobs run again.
//
// A process claims a chunk with one lock, records its jobs together, and gives back jobs that it
// has not begun when other hosts are idle.
type Batch struct {
	*common
	sections []int // number of the last job in each section of a list that has grown
	exchange *exchange
	recorder *recorder
	claimer  *claimer
}

// Run works through a list of jobs: see Batch, New and Batch.Run.
func Run(ctx context.Context, src multilock.Source, jobs []Job, opt Options) (Report, error) {
	b, err := New(src, jobs, opt)
	if err != nil {
		return Report{}, err
	}
	return b.Run(ctx)
}

// New prepares one Run. The error is a *source.InvalidError for invalid options or jobs, and
// multilock.ErrUnsupported if src is not a Source.
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
	if err := opt.check(jobs); err != nil {
		return nil, err
	}
	grower, ok := src.(source.ManifestGrower)
	if (opt.Add || opt.Replace) && !ok {
		return nil, fmt.Errorf("changing a list of jobs: %w: the source keeps lists as they are", multilock.ErrUnsupported)
	}
	c := &common{src: able, grower: grower, jobs: jobs, opt: opt, schedule: newSchedule(jobs, opt)}
	b := &Batch{common: c, exchange: newExchange(c)}
	b.recorder = &recorder{common: c, exchange: b.exchange}
	b.claimer = &claimer{common: c, exchange: b.exchange, recorder: b.recorder}
	b.divide()
	return b, nil
}

// divide divides the list into units.
func (b *Batch) divide() {
	b.schedule.change(func() { b.schedule.divide(b.sections, b.opt.Order == OrderRandom) })
}

// Run returns when every job of the list has a final result from any host, or when the batch was
// halted or drained, or when ctx ended. Call it once.
//
// The error is nil if every job has succeeded, and lockgroup.ErrNotDone if some have failed.
// Otherwise it is a *HaltError, ErrDrained, context.Cause(ctx), or an error of the source; a
// *ManifestError if the group has another list; a *BarrierError, which is a lockgroup.ErrNotDone,
// if failures block a barrier. The report is valid in every case, as far as it goes.
func (b *Batch) Run(ctx context.Context) (Report, error) {
	var stopWork, stopTaking context.CancelCauseFunc
	b.working, stopWork = context.WithCancelCause(ctx)
	defer stopWork(nil)
	b.taking, stopTaking = context.WithCancelCause(b.working)
	defer stopTaking(nil)
	b.stops.begin(stopTaking, stopWork)
	if err := b.join(b.taking); err != nil {
		return b.report(), err
	}
	for more := true; more; {
		b.halt()
		b.workThrough()
		var err error
		if more, err = b.takeUp(b.taking); err != nil {
			return b.report(), err
		}
	}
	return b.report(), b.runError(ctx)
}

// workThrough claims and runs jobs, and exchanges updates at the same time.
func (b *Batch) workThrough() {
	following, giveUp := context.WithCancel(context.WithoutCancel(b.working))
	defer giveUp()
	ended := make(chan struct{})
	var follower, workers sync.WaitGroup
	if b.opt.Busy != nil {
		b.askBusy()
		follower.Go(func() { b.keepThrottle(ended) })
	}
	follower.Go(func() { b.exchange.follow(following, ended) })
	for slot := range b.opt.Workers {
		workers.Go(func() { b.work(slot + 1) })
	}
	workers.Go(b.claimer.claimAll)
	workers.Go(b.claimer.lookAfter)
	workers.Wait()
	b.claimer.under.Wait()
	close(ended)
	patience := time.AfterFunc(lastUpdatesTimeout, giveUp)
	defer patience.Stop()
	follower.Wait()
}

// join checks that all hosts have the same list, and loads the recorded results.
func (b *Batch) join(ctx context.Context) error {
	if err := b.agree(ctx); err != nil {
		return err
	}
	if err := b.exchange.open(ctx); err != nil {
		return err
	}
	b.schedule.change(func() { b.schedule.countBefore() })
	return nil
}

// Drain makes Run start no more jobs and return when its running jobs have ended. It may be called
// at any time.
func (b *Batch) Drain() { b.stops.drain(ErrDrained) }

// runError returns the error of Run.
func (b *Batch) runError(ctx context.Context) error {
	b.schedule.mu.Lock()
	count, blocked := b.schedule.counts, b.schedule.stages.blocked()
	behind := b.schedule.stages.error()
	b.schedule.mu.Unlock()
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

// work runs jobs until none is left or the batch takes no more.
func (b *Batch) work(slot int) {
	for {
		t, err := b.schedule.take(b.taking)
		if err != nil {
			return
		}
		b.run(t, slot)
	}
}

// run makes one attempt at a job.
func (b *Batch) run(t task, slot int) {
	h, start := t.holding, time.Now()
	job := Attempt{Name: b.jobs[t.job].Name, Command: b.jobs[t.job].Command, Shown: b.jobs[t.job].Shown, Seq: t.job + 1, Number: t.number, Slot: slot, Lock: h.lock, Fence: h.fence}
	r, err := lockgroup.WhileHeld(b.working, h.lock, func(ctx context.Context) error { return b.jobs[t.job].Work(ctx, job) })
	if err == nil {
		r = b.recorder.complete(r, t, start)
	}
	b.schedule.change(func() {
		b.schedule.running--
		b.schedule.budget.regain(t.job)
		h.running--
		b.schedule.jobTime.add(time.Since(start))
		if err == nil && !h.dead {
			b.recorder.ended(h, attempt{t.job, r})
		}
		h.lingering = h.lingering || errors.Is(err, lockgroup.ErrLingering)
	})
	if err != nil {
		b.recorder.stopAfter(h, err)
	}
	b.halt()
}
