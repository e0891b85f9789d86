package batch_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/internal/testkit/sweep"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/lockgroup/batch"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
)

// replacing is a list that one host replaces and meets a fault, while another host works.
type replacing struct {
	t   *testing.T
	src *fslock.Source // without faults

	mu      sync.Mutex
	running map[string][]*run
	ran     map[string]int // NAME: COMMAND
	begun   func()
}

// replaced are the commands of jobs before and after. Job 12 is removed, and job 17 added.
var replaced = map[int][2]string{2: {"bad", "new"}, 9: {"bad", "new"}, 12: {"bad", ""}, 16: {"old", "new"}, 17: {"", "old"}}

func (p *replacing) list(h *host, when int) (list []batch.Job) {
	for n := range 17 {
		commands, changes := replaced[n+1]
		if !changes {
			commands = [2]string{"old", "old"}
		}
		if commands[when] != "" {
			list = append(list, p.job(h, batch.Job{Name: fmt.Sprintf("job%03d", n+1), Command: commands[when]}))
		}
	}
	return list
}

func (p *replacing) job(h *host, job batch.Job) batch.Job {
	job.Work = func(ctx context.Context, a batch.Attempt) error {
		if h.pass() != nil {
			return lockgroup.ErrNotRun
		}
		r := &run{h, a.Lock}
		p.begin(a, r)
		defer p.end(a, r)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Second):
		}
		if err := h.pass(); err != nil || a.Command != "bad" {
			return err
		}
		return errWork
	}
	return job
}

func (p *replacing) begin(a batch.Attempt, r *run) {
	p.mu.Lock()
	for _, other := range p.running[a.Name] {
		if other.believes() && r.believes() {
			p.t.Errorf("%s is run by two at a time", a.Name)
		}
	}
	p.running[a.Name] = append(p.running[a.Name], r)
	p.ran[a.Name+": "+a.Command]++
	p.begun()
	p.mu.Unlock()
	p.check(a, r)
}

func (p *replacing) end(a batch.Attempt, r *run) {
	p.check(a, r)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running[a.Name] = slices.DeleteFunc(p.running[a.Name], func(other *run) bool { return other == r })
}

// check requires that the running command is in the list, and has not run before.
func (p *replacing) check(a batch.Attempt, r *run) {
	command := ""
	err := joblist.Each(context.Background(), p.src, func(j joblist.Job) bool {
		if j.Name() == a.Name {
			command = j.Command()
		}
		return true
	})
	if err != nil {
		p.t.Error(err)
	}
	if command != a.Command && r.believes() {
		p.t.Errorf("%s runs %q, and the list has %q", a.Name, a.Command, command)
	}
}

func (p *replacing) requireDone() {
	p.t.Helper()
	names, err := p.src.Results(context.Background())
	require.NoError(p.t, err)
	count := map[string]int{}
	for _, name := range names {
		r, err := p.src.Result(context.Background(), name)
		require.NoError(p.t, err)
		joblist.EachJob(r, func(name string, r multilock.Result) {
			count[name]++
			require.True(p.t, r.OK() && r.Final, name)
		})
	}
	for _, job := range p.list(nil, 1) {
		require.Equal(p.t, 1, count[job.Name], job.Name)
	}
	require.Len(p.t, count, 16)
	for _, n := range []int{1, 3, 8, 10, 14} {
		require.Zero(p.t, p.ran[fmt.Sprintf("job%03d: old", n)], "it was done before")
	}
	for _, n := range []int{2, 9, 16} {
		require.NotZero(p.t, p.ran[fmt.Sprintf("job%03d: new", n)])
	}
}

// strikes injects one fault into the host that replaces the list. It reports whether that ended before.
func (p *replacing) strikes(base string, b blow) (ended bool) {
	before := newHost(p.t, base)
	_, err := batch.Run(inTime(p.t), before, p.list(before, 0), batch.Options{TTL: sweptTTL, Halt: batch.Halt{When: batch.HaltSoon, What: batch.HaltDone, Number: 14}})
	require.ErrorAs(p.t, err, new(*batch.HaltError))
	p.ran = map[string]int{}
	begun := make(chan struct{})
	p.begun = sync.OnceFunc(func() { close(begun) })
	start := func(h *host, when int) <-chan batchEnd {
		opt := batch.Options{TTL: sweptTTL, Replace: when == 1, Wait: time.Hour, Follow: func(job batch.Job) batch.Job { return p.job(h, job) }}
		if opt.Replace {
			opt.Redo = []string{"job016"} // the other host may have run it by then
		}
		return runningIn(inTime(p.t), prepare(p.t, h, p.list(h, when), opt))
	}
	works, struck, next := newHost(p.t, base), newHost(p.t, base), newHost(p.t, base)
	worksEnd := start(works, 0)
	<-begun
	struck.strike(b)
	struckEnd := start(struck, 1)
	var end batchEnd
	came := false
	select {
	case <-struck.struck:
	case end = <-struckEnd:
		came = true
	}
	select {
	case <-struck.struck:
		p.t.Logf("%s %s", struck.op.Kind, struck.op.Path)
	default:
		require.NoError(p.t, end.err)
		ended = true
	}
	if !ended && b.how == "stop" {
		time.Sleep(longStop)
	} else if !came {
		end, came = <-struckEnd, true
	}
	struck.end()
	nextEnd := <-start(next, 1)
	require.NoError(p.t, nextEnd.err, "%+v, and before: %v", nextEnd.report.Progress, end.err)
	struck.goOn()
	if !came {
		end = <-struckEnd
	}
	p.t.Log(end.err)
	if got := <-worksEnd; got.err != nil {
		require.ErrorIs(p.t, got.err, lockgroup.ErrNotDone, "the list was replaced later")
	}
	p.requireDone()
	return ended
}

// After a fault in any operation of a host that replaces a list, no host runs a command that is no longer in
// the list, and the same command once more completes it. Without -long every thirteenth operation
// meets a fault.
// Rule: replace, I1, I3
func TestSweepOfAReplacedList(t *testing.T) {
	slots := make(sweep.Slots, 4)
	sweep.Operations(t, 16, func(t *testing.T, n int) bool {
		if !*long && n%13 > 0 {
			return false
		}
		var ended atomic.Bool
		sweep.SideBySide(t, blowsAt(n), func(t *testing.T, b blow) {
			defer slots.Enter()()
			base := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				p := &replacing{t: t, src: newHost(t, base).Source, running: map[string][]*run{}, ran: map[string]int{}, begun: func() {}}
				if p.strikes(base, b) {
					ended.Store(true)
				}
			})
		})
		return ended.Load()
	})
}
