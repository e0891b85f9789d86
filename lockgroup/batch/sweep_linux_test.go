package batch_test

import (
	"context"
	"fmt"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
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
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// The real scheduler on real files, in a synctest bubble, where hours take milliseconds.

const (
	// sweptTTL is so long that file times, which come from the machine's clock, change between two
	// heartbeats.
	sweptTTL = 30 * time.Minute
	// longStop is how long a host is stopped: others have judged it dead by then.
	longStop = 4 * sweptTTL
)

// blow is a fault of a host at one operation.
type blow struct {
	how string // "crash", "stop", or "" for an error
	n   int
	sweep.Fault
}

func (b blow) String() string {
	if b.how != "" {
		return fmt.Sprintf("%s %s", b.how, b.Phase)
	}
	return b.Fault.String()
}

// host is one of the hosts that work through a list. It can end: other hosts then find its process dead,
// and alive until then.
type host struct {
	*fslock.Source
	t       *testing.T
	fs      *faultfs.FS
	process *exec.Cmd
	struck  chan struct{} // closed by the fault

	mu    sync.Mutex
	dead  bool
	still chan struct{} // closed when it continues; nil unless it is stopped
	op    faultfs.Op
}

func newHost(t *testing.T, base string) *host {
	t.Helper()
	h := &host{t: t, fs: faultfs.New(vfs.OS{}, nil), process: exec.Command("cat"), struck: make(chan struct{})}
	h.fs.Describe(vfs.FileSystem{Type: "test", NFS: true})
	_, err := h.process.StdinPipe() // it ends with the test
	require.NoError(t, err)
	require.NoError(t, h.process.Start())
	self, err := process.Find(h.process.Process.Pid)
	require.NoError(t, err)
	h.Source, err = fslock.Open(fslock.Options{Base: base, FS: h.fs, Self: self})
	require.NoError(t, err)
	t.Cleanup(func() {
		h.end()
		h.fs.Inject(nil)
		h.goOn()
		_ = h.Close()
	})
	return h
}

// end ends its process, as seen by other hosts.
func (h *host) end() {
	if h.process.ProcessState == nil {
		_ = h.process.Process.Kill()
		_ = h.process.Wait()
	}
}

// strike executes the fault.
func (h *host) strike(b blow) {
	h.fs.Inject(func(op faultfs.Op) error {
		if err := h.pass(); err != nil || op.N != b.n || op.Phase != b.Phase {
			return err
		}
		h.hit(b, op)
		if b.how != "" {
			return h.pass()
		}
		return b.Errno
	})
}

func (h *host) hit(b blow, op faultfs.Op) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.op = op
	switch b.how {
	case "crash":
		h.dead = true
		h.end()
	case "stop":
		h.still = make(chan struct{})
	}
	close(h.struck)
}

// pass waits while the host is stopped. It returns an error for a dead host.
func (h *host) pass() error {
	h.mu.Lock()
	dead, still := h.dead, h.still
	h.mu.Unlock()
	if dead {
		return syscall.ESHUTDOWN
	}
	if still != nil {
		<-still
	}
	return nil
}

// goOn ends a long stop.
func (h *host) goOn() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.still != nil {
		close(h.still)
		h.still = nil
	}
}

// OpenProgressMap implements source.Chunks. Calls on the map wait for each other in a way that lets the
// bubble's time pass.
func (h *host) OpenProgressMap(ctx context.Context) (source.ProgressMap, error) {
	inner, err := h.Source.OpenProgressMap(ctx)
	return &boardInTurns{inner, make(sweep.Slots, 1)}, err
}

type boardInTurns struct {
	source.ProgressMap
	turn sweep.Slots
}

func (b *boardInTurns) Read(ctx context.Context, size int) ([]byte, error) {
	defer b.turn.Enter()()
	return b.ProgressMap.Read(ctx, size)
}

func (b *boardInTurns) Write(ctx context.Context, at int, value byte) error {
	defer b.turn.Enter()()
	return b.ProgressMap.Write(ctx, at, value)
}

func (b *boardInTurns) Confirm(ctx context.Context, at int, value byte, sure func(context.Context) bool) error {
	defer b.turn.Enter()()
	return b.ProgressMap.Confirm(ctx, at, value, sure)
}

func (b *boardInTurns) Close() error {
	defer b.turn.Enter()()
	return b.ProgressMap.Close()
}

func (h *host) isDead() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dead
}

// observed is a list whose jobs are monitored: no two hosts may run one of them at a time, and none may
// begin when its result is recorded.
type observed struct {
	t   *testing.T
	src *fslock.Source // without faults
	n   int

	mu       sync.Mutex
	running  map[string][]*run
	recorded map[string]time.Time // when the jobs with a result began
	runs     map[string]int
	begun    chan struct{} // closed when the first job has begun
}

type run struct {
	on   *host
	lock *multilock.Lock
}

func (r *run) believes() bool { return !r.on.isDead() && r.lock.Remaining() > 0 }

func (o *observed) list(h *host, lasts time.Duration) []batch.Job {
	list := make([]batch.Job, o.n)
	for i := range list {
		list[i] = batch.Job{Name: fmt.Sprintf("job%03d", i+1), Command: "make", Work: func(ctx context.Context, a batch.Attempt) error {
			return o.work(ctx, h, a, lasts)
		}}
	}
	return list
}

func (o *observed) work(ctx context.Context, h *host, a batch.Attempt, lasts time.Duration) error {
	if h.pass() != nil {
		return lockgroup.ErrNotRun
	}
	r := &run{h, a.Lock}
	o.begin(a.Name, r)
	defer o.end(a.Name, r)
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(lasts):
	}
	if err := h.pass(); err != nil || a.Seq != failsOnce || a.Number > 1 {
		return err
	}
	return errWork
}

// failsOnce is the number of a job whose first attempt fails.
const failsOnce = 2

func (o *observed) begin(name string, r *run) {
	o.mu.Lock()
	for _, other := range o.running[name] {
		if other.believes() && r.believes() {
			o.t.Errorf("%s is run by two at a time: %s and %s", name, other.lock.Record().Token, r.lock.Record().Token)
		}
	}
	o.running[name] = append(o.running[name], r)
	o.runs[name]++
	if len(o.runs) == 1 && o.runs[name] == 1 {
		close(o.begun)
	}
	o.mu.Unlock()
	o.look()
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, done := o.recorded[name]; done && r.believes() {
		o.t.Errorf("%s runs though its result is recorded", name)
	}
}

func (o *observed) end(name string, r *run) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, other := range o.running[name] {
		if other == r {
			o.running[name] = append(o.running[name][:i:i], o.running[name][i+1:]...)
		}
	}
}

// look reads the recorded results: none may disappear or be replaced.
func (o *observed) look() map[string]int {
	names, err := o.src.Results(context.Background())
	if err != nil {
		o.t.Error(err)
	}
	count := map[string]int{}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, name := range names {
		r, err := o.src.Result(context.Background(), name)
		if err != nil {
			o.t.Error(err)
			continue
		}
		joblist.EachJob(r, func(name string, r multilock.Result) {
			if !r.Final {
				return
			}
			count[name]++
			if before, known := o.recorded[name]; known && !before.Equal(r.Start) {
				o.t.Errorf("the result of %s was replaced", name)
			}
			o.recorded[name] = r.Start
		})
	}
	for name := range o.recorded {
		if count[name] == 0 {
			o.t.Errorf("the result of %s is gone", name)
		}
	}
	return count
}

func (o *observed) requireDone() {
	o.t.Helper()
	count := o.look()
	require.Len(o.t, count, o.n)
	for name, n := range count {
		require.Equal(o.t, 1, n, "%s is recorded twice", name)
	}
}

const sweptJobs = 16 // the first four are a chunk, and the next three

// play is a list with a host that meets a fault, and other hosts.
type play struct {
	*observed
	base   string
	lasts  time.Duration // duration of a job
	struck *host
	end    <-chan batchEnd
	next   *host // a host that works through the list after the fault, or before
	nextIn <-chan batchEnd
}

// sweptScene is a scenario for the faulty host.
type sweptScene struct {
	name  string
	lasts time.Duration
	done  int // from this job on all are recorded
	begin func(*play, blow)
}

func (s sweptScene) String() string { return s.name }

func sweptScenes() []sweptScene {
	return []sweptScene{
		{"works alone", time.Second, 5, func(p *play, b blow) {
			p.struck.strike(b)
			p.end = p.start(p.struck)
		}},
		{"gives back", 20 * time.Second, 5, func(p *play, b blow) {
			p.end = p.start(p.struck)
			<-p.begun
			p.struck.strike(b)
			p.startNext()
		}},
		{"takes what is given back", 20 * time.Second, 5, func(p *play, b blow) {
			p.startNext()
			<-p.begun
			p.struck.strike(b)
			p.end = p.start(p.struck)
		}},
		{"takes over", time.Second, 5, func(p *play, b blow) {
			p.leaveHalf()
			p.struck.strike(b)
			p.end = p.start(p.struck)
		}},
	}
}

// start makes a host work through the list.
func (p *play) start(h *host) <-chan batchEnd {
	p.t.Helper()
	opt := batch.Options{Retries: 1, TTL: sweptTTL}
	return runningIn(inTime(p.t), prepare(p.t, h, p.list(h, p.lasts), opt))
}

func (p *play) startNext() {
	p.next = newHost(p.t, p.base)
	p.nextIn = p.start(p.next)
}

// record commits a record of a chunk as a host that has ended since.
func (p *play) record(h *host, from, to int, returned []source.Range, jobs ...int) *multilock.Lock {
	p.t.Helper()
	c := &source.Chunk{From: from, To: to, Returned: returned}
	for _, n := range jobs {
		c.Jobs = append(c.Jobs, source.ChunkJob{Number: n, Name: fmt.Sprintf("job%03d", n), Attempt: 1, Start: int64(n)})
	}
	c.Count()
	name := joblist.ChunkName(source.Range{From: from, To: to})
	lock, err := multilock.TryAcquire(p.t.Context(), h, name, multilock.Options{TTL: sweptTTL})
	require.NoError(p.t, err)
	held := lock.Record()
	r := multilock.Result{Name: name, Token: held.Token, By: held.Holder.Identity, Attempt: 1, Final: c.Final(), Chunk: c}
	require.NoError(p.t, lock.Commit(p.t.Context(), r))
	return lock
}

// leaveHalf leaves a chunk of a dead host that has recorded some of its jobs, and given back others, of
// which one is recorded, too.
func (p *play) leaveHalf() {
	dead := newHost(p.t, p.base)
	returned := source.Range{From: 3, To: 4}
	require.NoError(p.t, p.record(dead, 1, 4, []source.Range{returned}, 1).Detach())
	require.NoError(p.t, p.record(dead, 3, 4, nil, 4).Detach())
	dead.end()
}

// run injects one fault. It reports whether the list was completed before it.
func (s sweptScene) run(t *testing.T, b blow) (ended bool) {
	base := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		o := &observed{t: t, src: newHost(t, base).Source, n: sweptJobs, running: map[string][]*run{}, recorded: map[string]time.Time{}, runs: map[string]int{}, begun: make(chan struct{})}
		p := &play{observed: o, base: base, lasts: s.lasts, struck: newHost(t, base)}
		before := newHost(t, base)
		for _, u := range []source.Range{{From: 5, To: 7}, {From: 8, To: 9}, {From: 10, To: 10}, {From: 11, To: 11}, {From: 12, To: 12}, {From: 13, To: 13}, {From: 14, To: 14}, {From: 15, To: 15}, {From: 16, To: 16}} {
			if u.From >= s.done {
				var jobs []int
				for n := u.From; n <= u.To; n++ {
					jobs = append(jobs, n)
				}
				require.NoError(t, p.record(before, u.From, u.To, nil, jobs...).Release(t.Context()))
			}
		}
		s.begin(p, b)
		ended = p.through(b)
	})
	return ended
}

// through executes the fault and waits until all hosts have ended.
func (p *play) through(b blow) (ended bool) {
	var end batchEnd
	came := false
	select {
	case <-p.struck.struck:
	case end = <-p.end:
		came = true
	}
	select { // a host whose first call fails may have ended as well
	case <-p.struck.struck:
		p.t.Logf("%s %s", p.struck.op.Kind, p.struck.op.Path)
	default:
		require.NoError(p.t, end.err, "%+v", end.report.Progress)
		ended = true
	}
	if !ended && b.how != "stop" {
		if !came {
			end = <-p.end
		}
		p.t.Logf("%+v %v", end.report, end.err)
	}
	if !ended && b.how == "stop" {
		time.Sleep(longStop)
	}
	p.struck.end()
	if p.next == nil {
		p.startNext()
	}
	next := <-p.nextIn
	require.NoError(p.t, next.err, "%+v", next.report.Progress)
	if !ended && b.how == "stop" {
		p.struck.goOn()
		if !came {
			end = <-p.end
		}
		require.NoError(p.t, end.err, "%+v", end.report.Progress)
	}
	p.requireDone()
	p.t.Log(p.runs, time.Now())
	return ended
}

// After a fault in any operation of a host, each job gets one result, and runs neither twice at a time nor
// after its result. Without -long every thirteenth operation meets a fault.
// Rule: chunks, give-back, I1, I3, I7
func TestSweepOfABatch(t *testing.T) {
	slots := make(sweep.Slots, 4)
	for _, s := range sweptScenes() {
		t.Run(s.name, func(t *testing.T) {
			sweep.Operations(t, 16, func(t *testing.T, n int) bool {
				if !*long && n%13 > 0 {
					return false
				}
				var ended atomic.Bool
				sweep.SideBySide(t, blowsAt(n), func(t *testing.T, b blow) {
					defer slots.Enter()()
					if s.run(t, b) {
						ended.Store(true)
					}
				})
				return ended.Load()
			})
		})
	}
}

// blowsAt returns the faults at an operation: one of them in turn, unless all are wanted.
func blowsAt(n int) (all []blow) {
	for _, f := range sweep.FaultsAt(n) {
		all = append(all, blow{n: n, Fault: f})
	}
	for _, phase := range sweep.Phases() {
		all = append(all, blow{"crash", n, sweep.Fault{Phase: phase}}, blow{"stop", n, sweep.Fault{Phase: phase}})
	}
	if sweep.Exhaustive() {
		return all
	}
	return all[n%len(all):][:1]
}
