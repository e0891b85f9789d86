package batch_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/internal/testkit/actor"
	"github.com/multilock/go/internal/testkit/worker"
	"github.com/multilock/go/lockgroup/batch"
	"github.com/multilock/go/lockgroup/internal/grouptest"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/fslock/fslocktest"
	"github.com/multilock/go/multilock/locktest"
)

var (
	long      = flag.Bool("long", false, "chaos: 10,000 jobs instead of 300; sweep: each operation")
	seedChaos = flag.Uint64("seed", 0, "chaos: the seed of what happens to whom, 0 for a new one")
)

func TestMain(m *testing.M) {
	actor.Play(map[string]func() error{"host": playHost})
	os.Exit(m.Run())
}

// chaosTTL is short: most of the time is spent waiting for dead holders.
const chaosTTL = 2 * time.Second

// chaos is a list that processes on several "hosts" work through, while they are killed, stopped, and asked
// to end. A job is one hold in their history.
type chaos struct {
	*testing.T
	base    string
	jobs    int
	rng     *rand.Rand
	history *worker.History
	hosts   []*chaosHost
	struck  map[string]int
}

// chaosHost is a host that runs one process after another.
type chaosHost struct {
	*actor.Actor
	chaosPart
	ended  chan struct{} // closed when the process has ended
	resume time.Time     // when to continue it, zero if it runs
}

// chaosPart is the configuration of one process.
type chaosPart struct {
	Name, Host, Base string
	Jobs, Life       int
}

// Whatever happens to the hosts that work through a list, each of its jobs gets one result, no two hosts run
// it at a time, and none runs it again when it has a result.
// Rule: chunks, I1, I3, I7
func TestChaosOfABatch(t *testing.T) {
	c := &chaos{T: t, base: t.TempDir(), jobs: 300, history: worker.NewHistory(t, io.Discard), struck: map[string]int{}}
	if *long {
		c.jobs = 10000
	}
	seed := *seedChaos
	if seed == 0 {
		seed = rand.Uint64()
	}
	c.rng = rand.New(rand.NewPCG(seed, 0))
	t.Logf("-seed %d", seed)
	for n := range 5 {
		h := &chaosHost{chaosPart: chaosPart{Host: fmt.Sprint("host", n), Base: c.base, Jobs: c.jobs}}
		c.hosts = append(c.hosts, h)
		c.begin(h)
	}
	for !c.isOver() {
		c.strike(c.hosts[c.rng.IntN(len(c.hosts))])
		worker.Pause(t.Context(), worker.UpTo(c.rng, chaosTTL/4))
	}
	for _, h := range c.hosts {
		h.GoOn(t)
	}
	c.history.Close(t)
	c.judge()
}

// begin starts the next process on a host.
func (c *chaos) begin(h *chaosHost) {
	h.Life++
	h.Name, h.resume, h.ended = fmt.Sprintf("%s.%d", h.Host, h.Life), time.Time{}, make(chan struct{})
	h.Actor = actor.Prepare(c, "host", h.chaosPart)
	h.Stdout = c.history.In
	h.Start(c)
	go func(a *actor.Actor, ended chan struct{}) {
		_ = a.Wait()
		close(ended)
	}(h.Actor, h.ended)
}

// isOver reports whether a process has found nothing left to do, and continues the stopped processes that
// are due.
func (c *chaos) isOver() bool {
	for _, h := range c.hosts {
		select {
		case <-h.ended:
			h.requireGoodEnd(c.T)
			return true
		default:
		}
		if !h.resume.IsZero() && time.Now().After(h.resume) {
			h.resume = time.Time{}
			h.goOn()
		}
	}
	return false
}

// goOn continues a process, which may have ended.
func (h *chaosHost) goOn() { _ = h.Process.Signal(syscall.SIGCONT) }

// GoOn lets it run until its end.
func (h *chaosHost) GoOn(t *testing.T) {
	t.Helper()
	h.goOn()
	select {
	case <-h.ended:
		h.requireGoodEnd(t)
	case <-grouptest.Within(t).Done():
		require.Fail(t, "it does not end", h.Name)
	}
}

// requireGoodEnd accepts a process that was asked to end before it could handle the signal.
func (h *chaosHost) requireGoodEnd(t *testing.T) {
	t.Helper()
	require.LessOrEqual(t, h.ProcessState.ExitCode(), 0, "%s: %s", h.Name, h.ProcessState)
}

func (c *chaos) strike(h *chaosHost) {
	blow := []string{"killed", "stopped", "told to end"}[c.rng.IntN(3)]
	c.struck[blow]++
	switch blow {
	case "killed":
		require.NoError(c, locktest.NewRecorder(c.history.In, h.Name).Record(locktest.Event{Kind: locktest.Killed}))
		h.End()
		<-h.ended
		c.begin(h)
	case "stopped":
		_ = h.Process.Signal(syscall.SIGSTOP)
		h.resume = time.Now().Add(worker.UpTo(c.rng, 2*chaosTTL))
	case "told to end":
		_ = h.Process.Signal(syscall.SIGTERM)
		h.GoOn(c.T)
		c.begin(h)
	}
}

// playHost works through the list. When asked to end, every other host lets its jobs end first.
func playHost() error {
	var part chaosPart
	if err := actor.Part(&part); err != nil {
		return err
	}
	self, err := locktest.SelfOn(part.Host)
	if err != nil {
		return err
	}
	src, err := fslock.Open(fslock.Options{Base: part.Base, Self: self})
	if err != nil {
		return err
	}
	opt := batch.Options{Workers: 2, Retries: 1, TTL: chaosTTL, Poll: chaosTTL / 20}
	b, err := batch.New(src, chaosJobs(part), opt)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	go func() {
		<-told
		if part.Life%2 == 0 {
			b.Drain()
			return
		}
		cancel()
	}()
	if _, err = b.Run(ctx); errors.Is(err, batch.ErrDrained) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// chaosJobs returns jobs of up to a tenth of a second; every tenth fails at first.
func chaosJobs(part chaosPart) []batch.Job {
	told := locktest.NewRecorder(os.Stdout, part.Name)
	work := func(ctx context.Context, a batch.Attempt) error {
		e := locktest.Event{Kind: locktest.Acquired, Name: a.Name, Time: locktest.Now()}
		e.Token = fmt.Sprintf("%s-%s/%d/%d", a.Lock.Record().Token, a.Name, a.Number, time.Now().UnixMilli())
		e.Until = e.Time + a.Lock.Remaining()
		if err := told.Record(e); err != nil {
			return err
		}
		end := locktest.Event{Kind: locktest.Releasing, Name: a.Name, Token: e.Token}
		if !worker.Pause(ctx, rand.N(100*time.Millisecond)) {
			end.Kind = locktest.Lost
			return errors.Join(context.Cause(ctx), told.Record(end))
		}
		if err := told.Record(end); err != nil {
			return err
		}
		if a.Number == 1 && a.Seq%10 == 0 {
			return errWork
		}
		return nil
	}
	list := make([]batch.Job, part.Jobs)
	for i := range list {
		list[i] = batch.Job{Name: fmt.Sprintf("job%05d", i+1), Command: "make", Work: work}
	}
	return list
}

// chaosRun is an attempt at a job.
type chaosRun struct {
	locktest.Event
	attempt int
	millis  int64
	ended   bool
}

// judge checks the processes' history and the recorded results.
func (c *chaos) judge() {
	events := c.history.All()
	require.NoError(c, locktest.Check(events))
	runs, count := chaosRuns(c, events)
	results := c.results()
	require.Len(c, results, c.jobs)
	for name, r := range results {
		if !r.Final || !r.OK() {
			c.Errorf("%s is not done: %+v", name, r)
		}
		c.judgeRuns(name, r, runs[name])
	}
	c.Logf("%d jobs, %d runs, %v", c.jobs, count, c.struck)
}

// judgeRuns finds the run of a result: it has ended, and it is the last run that began while its process
// held the lock.
func (c *chaos) judgeRuns(name string, r multilock.Result, runs []*chaosRun) {
	recorded := false
	for _, run := range runs {
		switch {
		case recorded && run.Until > run.Time:
			c.Errorf("%s ran %s after its result %+v", run.Proc, name, r)
		case !recorded && run.attempt == r.Attempt && run.millis >= r.Start.UnixMilli():
			if recorded = true; !run.ended {
				c.Errorf("the result of %s is that of a run by %s that did not end", name, run.Proc)
			}
		}
	}
	if !recorded {
		c.Errorf("the result of %s is of no run: %+v", name, r)
	}
}

func chaosRuns(t testing.TB, events []locktest.Event) (runs map[string][]*chaosRun, count int) {
	t.Helper()
	runs = map[string][]*chaosRun{}
	byToken := map[string]*chaosRun{}
	for _, e := range events {
		switch e.Kind {
		case locktest.Acquired:
			run := &chaosRun{Event: e}
			_, err := fmt.Sscanf(e.Token[strings.Index(e.Token, "/"):], "/%d/%d", &run.attempt, &run.millis)
			require.NoError(t, err)
			byToken[e.Token] = run
			runs[e.Name] = append(runs[e.Name], run)
			count++
		case locktest.Releasing:
			byToken[e.Token].ended = true
		}
	}
	return runs, count
}

func (c *chaos) results() map[string]multilock.Result {
	src := fslocktest.Open(c, fslock.Options{Base: c.base})
	names, err := src.Results(c.Context())
	require.NoError(c, err)
	results := map[string]multilock.Result{}
	var mu sync.Mutex
	require.NoError(c, joblist.EachResult(c.Context(), src, names, func(name string, r multilock.Result) {
		mu.Lock()
		defer mu.Unlock()
		if _, twice := results[name]; twice {
			c.Errorf("%s is recorded twice", name)
		}
		results[name] = r
	}))
	return results
}
