package nfs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/lockgroup/batch"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

// batchVariable tells a process of the role "batch" what to do, as JSON.
const batchVariable = "MULTILOCK_BATCH"

// batchPlan is what one worker process is told. Its jobs do nothing but tell the
// witness of themselves, so what a run takes is what batches cost.
type batchPlan struct {
	Base    string
	Jobs    []string
	Width   int
	TTL     time.Duration
	Witness string
	Worker  string
	Variant string
}

// workerOn is a worker of the trial on a host: the command, or this binary.
func (r *trial) workerOn(h host, name string) *exec.Cmd {
	r.t.Helper()
	if r.list != "" {
		cmd := exec.Command("on", h.name, command, "-d", r.on(h), "batch", "-q", "-j", strconv.Itoa(r.width), "--ttl", trialTTL.String(), r.list)
		cmd.Env = append(os.Environ(), workerVariable+"="+name)
		return cmd
	}
	self, err := os.Executable()
	require.NoError(r.t, err)
	plan, err := json.Marshal(batchPlan{
		Base: r.on(h), Jobs: r.jobs, Width: r.width, TTL: trialTTL, Witness: r.witness.path, Worker: name, Variant: r.variant,
	})
	require.NoError(r.t, err)
	cmd := exec.Command("on", h.name, self)
	cmd.Env = append(os.Environ(), roleVariable+"=batch", batchVariable+"="+string(plan))
	return cmd
}

// workBatch works through a list with package lockgroup.
func workBatch(text string) error {
	var plan batchPlan
	if err := json.Unmarshal([]byte(text), &plan); err != nil {
		return err
	}
	src, err := fslock.Open(fslock.Options{Base: plan.Base})
	if err != nil {
		return err
	}
	opt := batch.Options{Options: multilock.Options{TTL: plan.TTL}, Workers: plan.Width}
	b, err := batch.New(watchedSource{src, plan}, plan.jobs(), opt)
	if err != nil {
		return errors.Join(err, src.Close())
	}
	_, err = b.Run(context.Background())
	return errors.Join(err, src.Close())
}

func (p batchPlan) jobs() []batch.Job {
	w := p.witness()
	var jobs []batch.Job
	for _, name := range p.Jobs {
		jobs = append(jobs, batch.Job{Name: name, Work: func(_ context.Context, a batch.Attempt) error {
			token := a.Lock.Record().Token
			return errors.Join(w.tell("start", name, p.Worker, token), w.tell("end", name, p.Worker, token))
		}})
	}
	return jobs
}

// watchedSource tells the witness of commits. A variant of it makes a mistake that
// is easily made.
type watchedSource struct {
	*fslock.Source
	plan batchPlan
}

// The variants.
const (
	blind = "blind" // believes that what the news do not tell has not happened
	hasty = "hasty" // looks for the result before it has the lock
)

// Contend implements multilock.Source.
func (s watchedSource) Contend(ctx context.Context, name string, claim source.Claim, patience multilock.Patience) (source.Contender, error) {
	var seen error
	if s.plan.Variant == hasty {
		_, seen = s.Result(ctx, name)
	}
	c, err := s.Source.Contend(ctx, name, claim, patience)
	if err != nil {
		return nil, err
	}
	return watchedContender{c, s, seen}, nil
}

type watchedContender struct {
	source.Contender
	src  watchedSource
	seen error // what was learned before the first attempt
}

// Try implements source.Contender.
func (c watchedContender) Try(ctx context.Context) (source.Lease, error) {
	lease, err := c.Contender.Try(ctx)
	if err != nil {
		return nil, err
	}
	committer, ok := lease.(source.Committer)
	if !ok {
		return nil, fmt.Errorf("a lease that commits nothing: %T", lease)
	}
	return watchedLease{lease, committer, c}, nil
}

type watchedLease struct {
	source.Lease
	source.Committer
	contender watchedContender
}

// Outcome implements source.Committer.
func (l watchedLease) Outcome(ctx context.Context) (multilock.Result, error) {
	switch {
	case l.contender.src.plan.Variant == blind:
		return multilock.Result{}, multilock.ErrNoResult
	case l.contender.seen != nil:
		return multilock.Result{}, l.contender.seen
	}
	return l.Committer.Outcome(ctx)
}

// Commit implements source.Committer.
func (l watchedLease) Commit(ctx context.Context, r multilock.Result) error {
	if err := l.Committer.Commit(ctx, r); err != nil {
		return err
	}
	plan := l.contender.src.plan
	return plan.witness().tell("returned", r.Name, plan.Worker, r.Token)
}

func (p batchPlan) witness() *witness { return &witness{p.Witness} }
