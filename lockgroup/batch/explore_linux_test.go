package batch_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/explore"
	"github.com/multilock/go/internal/explore/locks"
	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/internal/simnfs"
	"github.com/multilock/go/lockgroup/batch"
	"github.com/multilock/go/multilock/source"
)

// The real scheduler on the simulated server, in every order, with a short list that is one chunk, of which
// parts are given back.

// playedLength is so long that jobs that have not begun are given back to an idle host. No times of these
// scenarios are multiples of each other: the order of two goroutines of one host at the same moment is
// undefined.
const playedLength = 6170 * time.Millisecond

// listFacts are the facts of a list, independent of the hosts' views.
type listFacts struct {
	jobs  int
	lasts time.Duration // duration of each job

	mu       sync.Mutex
	running  map[*explore.Actor]atWork
	recorded map[int]source.ChunkJob // on the server
	read     map[string]string       // the last state of the results
	forgets  bool                    // a host has begun to delete results
}

type atWork struct {
	job int
	ctx context.Context //nolint:containedctx // whether it believes
}

func listFactsOf(w *explore.World) *listFacts { return w.Facts.(*listFacts) }

// done reports whether a job is recorded as a success.
func (f *listFacts) done(job int) bool {
	r, known := f.recorded[job]
	return known && r.Exit == 0 && r.Signal == ""
}

func (f *listFacts) allDone() bool {
	for job := range f.jobs {
		if !f.done(job + 1) {
			return false
		}
	}
	return true
}

// learn reads the results on the server. No earlier one may be missing.
func (f *listFacts) learn(w *explore.World) (wrong string) {
	news := false
	for from := range f.jobs {
		for to := from; to < f.jobs; to++ {
			name := joblist.ChunkName(source.Range{From: from + 1, To: to + 1})
			if text := string(locks.Result(w, name)); text != f.read[name] {
				f.read[name], news = text, true
			}
		}
	}
	if !news {
		return ""
	}
	before := f.recorded
	f.recorded = map[int]source.ChunkJob{}
	for _, text := range f.read {
		for line := range bytes.Lines([]byte(text)) {
			var job source.ChunkJob
			if json.Unmarshal(line, &job) == nil && job.Number > 0 {
				f.recorded[job.Number] = job
			}
		}
	}
	for job := range before {
		if _, kept := f.recorded[job]; !kept && !f.forgets {
			wrong = fmt.Sprintf("I7: the result of job %d is gone", job)
		}
	}
	return wrong
}

// keepsWhatEnded is called after each change.
func keepsWhatEnded(w *explore.World) string {
	f := listFactsOf(w)
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.learn(w)
}

// begins records that an attempt at a job begins, and reports what is wrong with it.
func (f *listFacts) begins(ctx context.Context, a *explore.Actor, t batch.Attempt) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.learn(a.World())
	a.Note("begins job %d, attempt %d", t.Seq, t.Number)
	last, known := f.recorded[t.Seq]
	switch {
	case f.done(t.Seq):
		a.World().Violate("I7: %s begins job %d, and its result is recorded", a.Name, t.Seq)
	case !f.forgets && (t.Number > 1) != known || known && last.Attempt >= t.Number:
		a.World().Violate("I7: %s begins attempt %d at job %d, and %d is recorded", a.Name, t.Number, t.Seq, last.Attempt)
	}
	for other, r := range f.running {
		if other != a && r.job == t.Seq && !other.Gone() && r.ctx.Err() == nil {
			a.World().Violate("I1: %s begins job %d, and %s runs it", a.Name, t.Seq, other.Name)
		}
	}
	f.running[a] = atWork{t.Seq, ctx}
}

func (f *listFacts) ends(a *explore.Actor) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.running, a)
}

var errFirst = errors.New("the first attempt fails")

// playedList returns the jobs as an actor runs them. The second one fails at first.
func playedList(a *explore.Actor) []batch.Job {
	f := listFactsOf(a.World())
	list := make([]batch.Job, f.jobs)
	for i := range list {
		list[i] = batch.Job{Name: strconv.Itoa(100 + i), Command: "work", Work: func(ctx context.Context, t batch.Attempt) error {
			if !a.Gate("begins a job") || ctx.Err() != nil {
				return context.Cause(ctx)
			}
			f.begins(ctx, a, t)
			defer f.ends(a)
			if err := lasts(f.lasts)(ctx, t); err != nil || t.Seq != 2 || t.Number > 1 {
				return err
			}
			return errFirst
		}}
	}
	return list
}

// worksThrough is a host that works through the list, as often as needed.
func worksThrough(a *explore.Actor) {
	for !a.Gone() {
		report, err := worksOnce(a)
		if !a.Gate("has run") {
			return
		}
		a.Note("%d done, %d before, %d taken over: %v", report.Done, report.Before, report.TakenOver, err)
		if err == nil {
			toldRight(a, report)
			return
		}
		a.Sleep(locks.Beat)
	}
}

func worksOnce(a *explore.Actor) (batch.Report, error) {
	src, err := locks.Source(a)
	if err != nil {
		return batch.Report{}, err
	}
	b, err := batch.New(src, playedList(a), batch.Options{TTL: locks.TTL, Retries: 1})
	if err != nil {
		return batch.Report{}, err
	}
	b.InOneChunk(drawn())
	return b.Run(a.Context())
}

// drawn replaces random numbers: always the same sequence, with long pauses.
func drawn() func(n int64) int64 {
	var mu sync.Mutex
	draws := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // to be repeated
	return func(n int64) int64 {
		if n > int64(time.Millisecond) || n == 1 {
			return n - 1 - n/7
		}
		mu.Lock()
		defer mu.Unlock()
		return draws.Int64N(n)
	}
}

// toldRight compares a host's report with the recorded results.
func toldRight(a *explore.Actor, report batch.Report) {
	f := listFactsOf(a.World())
	f.mu.Lock()
	defer f.mu.Unlock()
	f.learn(a.World())
	if !f.forgets && (report.Done != f.jobs || !f.allDone()) {
		a.World().Violate("I7: %s is told that %d jobs are done, and recorded is %v", a.Name, report.Done, f.recorded)
	}
}

// allIsDone requires that all jobs are done if a host is left, and that it took no longer than the faults
// delay other hosts.
func allIsDone(w *explore.World) {
	f := listFactsOf(w)
	f.learn(w)
	living := slices.ContainsFunc(w.Actors(), func(a *explore.Actor) bool { return !a.Crashed })
	if living && !f.allDone() {
		w.Violate("I3: all have ended, and recorded is %v", f.recorded)
	}
	runs := time.Duration(f.jobs + 1)
	if f.forgets {
		runs *= 2
	}
	allowed := runs*(f.lasts+locks.Beat) + lastLookOfAll
	allowed += time.Duration(len(w.Met())) * (w.Pause() + locks.TTL + 3*locks.Beat + lastLookOfAll)
	if late := w.Elapsed() - allowed; late > 0 {
		w.Violate("I3: it took %s too long", late)
	}
}

// lastLookOfAll is the longest pause between two inspections by idle hosts.
const lastLookOfAll = 15 * time.Second

// listOf is a scenario in which hosts work through one list.
func listOf(jobs int, hosts ...func(*explore.Actor)) *explore.Scenario {
	sc := locks.Scenario(hosts...)
	for i := range sc.Actors {
		sc.Actors[i].Threads = true
	}
	sc.InTurn = true
	sc.Mount.MinAge, sc.Mount.MaxAge = 3*time.Second, 6*time.Second // for timely reads of the map
	sc.Pause, sc.Nap = sc.Pause+730*time.Millisecond, sc.Nap-590*time.Millisecond
	sc.Facts = func() any {
		return &listFacts{jobs: jobs, lasts: playedLength, running: map[*explore.Actor]atWork{}, recorded: map[int]source.ChunkJob{}, read: map[string]string{}}
	}
	sc.Always, sc.AtEnd = keepsWhatEnded, allIsDone
	return sc
}

func proven(t *testing.T, r explore.Report) {
	t.Helper()
	t.Log(r)
	if r.Violation != "" {
		require.Fail(t, r.Violation, "replay with %s\n%s", r.Choices, r.Trace)
	}
}

// playedThrough plays all orders with two preemptions, and one of these faults; or, in the long form, any
// fault, and then both, within twenty minutes.
func playedThrough(t *testing.T, sc *explore.Scenario, kinds ...explore.Fate) {
	t.Helper()
	sc.Preemptions, sc.Faults = 2, 0
	proven(t, sc.Exhaust(t, 10*time.Minute))
	all := sc.Kinds
	sc.Kinds, sc.Preemptions, sc.Faults = kinds, 0, 1
	if !*long {
		proven(t, sc.Exhaust(t, 10*time.Minute))
		sc.Kinds, sc.Preemptions, sc.Faults, sc.InTurn = all, 5, 2, false
		proven(t, sc.Sample(t, 1, 100))
		return
	}
	sc.Kinds = all
	proven(t, sc.Exhaust(t, 20*time.Minute))
	sc.Preemptions = 1
	proven(t, sc.Exhaust(t, 20*time.Minute))
	sc.Preemptions, sc.Faults, sc.InTurn = 5, 2, false
	proven(t, sc.Sample(t, 1, 10_000))
}

// Two hosts, of which one gives back jobs for the other, and either may die or be suspended.
// Rule: chunks, give-back, I1, I3, I7
func TestExploreList(t *testing.T) {
	t.Parallel()
	playedThrough(t, listOf(3, worksThrough, worksThrough), explore.Crash, explore.Pause)
}

// Two requests fail that record or announce results: a host that could not record one begins no more jobs,
// and leaves the list to hosts that can.
// Rule: chunks
func TestExploreListWrites(t *testing.T) {
	t.Parallel()
	sc := listOf(3, worksThrough, worksThrough)
	sc.AtEnd, sc.Kinds, sc.Preemptions, sc.Faults = nil, []explore.Fate{explore.Failed}, 0, 2
	sc.Private = func(r simnfs.Request) bool {
		return !strings.HasSuffix(r.Path, ".result") && !strings.HasSuffix(r.Path, "/board")
	}
	proven(t, sc.Exhaust(t, 10*time.Minute))
}

// The same schedule has the same result, although goroutines wake each other, except if two wake at once and
// lock one mutex, whose order Go's scheduler decides. That happens four times in 720 on two processors,
// and twice in 2,500 on one (GOMAXPROCS=1), when the machine is so busy that Go takes a goroutine that
// waited for the processor for one that ran for too long.
// Rule: none (explorer)
func TestExploreListAgain(t *testing.T) {
	t.Parallel()
	sc := listOf(3, worksThrough, worksThrough)
	sc.Preemptions, sc.Faults = 5, 2
	var ends map[string]int
	sc.AtEnd = func(w *explore.World) { ends[w.State()]++ }
	for n := range 12 {
		c := explore.Choices{21*n + 3: 1 + n%5, 33*n + 5: 1 + n%9, 240 - 15*n: 1 + n%7}
		ends = map[string]int{}
		for range 5 {
			sc.Replay(t, c)
		}
		require.GreaterOrEqual(t, slices.Max(slices.Collect(maps.Values(ends))), 3, "%s", c)
	}
}

// recordedBefore puts the record of a chunk on the server, from a host that has left it.
func recordedBefore(sc *explore.Scenario, chunk source.Chunk) {
	prepare, name := sc.Prepare, joblist.ChunkName(source.Range{From: chunk.From, To: chunk.To})
	chunk.Count()
	sc.Prepare = func(a *explore.Actor) {
		if prepare(a); a.Name != "A" {
			return
		}
		lease, err := locks.TryOnce(a, name)
		if err == nil {
			r := source.Result{Name: name, Token: lease.Record().Token, By: lease.Record().Holder.Identity, Attempt: 1, Final: chunk.Final(), Chunk: &chunk}
			err = errors.Join(lease.(source.Committer).Commit(context.Background(), r), lease.Release(context.Background()))
		}
		if err != nil {
			a.World().Violate("prepare: %v", err)
		}
	}
}

func longerJobs(sc *explore.Scenario, times time.Duration) {
	facts := sc.Facts
	sc.Facts = func() any {
		f := facts().(*listFacts)
		f.lasts *= times
		return f
	}
}

// A host that takes over a chunk of which a part was given back does not delay that part: two attempts at
// its job take no longer because the chunk's own job runs long.
// Rule: give-back
func TestExploreListTakenOver(t *testing.T) {
	t.Parallel()
	sc := listOf(2, worksThrough, worksThrough)
	recordedBefore(sc, source.Chunk{From: 1, To: 2, Returned: []source.Range{{From: 2, To: 2}}})
	longerJobs(sc, 10)
	sc.AtEnd = func(w *explore.World) {
		allIsDone(w)
		if late := w.Elapsed() - 2*listFactsOf(w).lasts - lastLookOfAll; late > 0 {
			w.Violate("I3: a part was waited for %s too long", late)
		}
	}
	if !*long {
		sc.Preemptions = 0
	}
	proven(t, sc.Exhaust(t, 10*time.Minute))
}
