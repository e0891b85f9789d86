package batch_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/explore"
	"github.com/multilock/go/internal/explore/locks"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/lockgroup/batch"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// The real scheduler of a list on the simulated server, in every order: a list of three jobs that is
// one chunk, and of which parts are given back.

const (
	playedJobs = 3
	// playedLength is so long that what is not begun is given back to who has nothing to do.
	playedLength = 6170 * time.Millisecond
)

// listFacts are what is true of a list, whatever hosts believe.
type listFacts struct {
	mu       sync.Mutex
	running  map[*explore.Actor]atWork
	recorded map[int]bool      // jobs whose success was on the server
	read     map[string]string // the results, as they were last
}

type atWork struct {
	job int
	ctx context.Context //nolint:containedctx // whether it believes
}

func newListFacts() any {
	return &listFacts{running: map[*explore.Actor]atWork{}, recorded: map[int]bool{}, read: map[string]string{}}
}

func listFactsOf(w *explore.World) *listFacts { return w.Facts.(*listFacts) }

// learn reads the results that are on the server. None may be missing that was there.
func (f *listFacts) learn(w *explore.World) (wrong string) {
	news := false
	for from := range playedJobs {
		for to := from; to < playedJobs; to++ {
			name := lockgroup.ChunkName(source.Range{From: from + 1, To: to + 1})
			if text := string(locks.Result(w, name)); text != f.read[name] {
				f.read[name], news = text, true
			}
		}
	}
	if !news {
		return ""
	}
	now := map[int]bool{}
	for _, text := range f.read {
		for _, line := range bytes.Split([]byte(text), []byte("\n"))[min(1, len(text)):] {
			var job source.ChunkJob
			if json.Unmarshal(line, &job) == nil && job.Number > 0 && job.Exit == 0 && job.Signal == "" {
				now[job.Number] = true
			}
		}
	}
	for job := range f.recorded {
		if !now[job] {
			wrong = fmt.Sprintf("I7: the result of job %d is gone", job)
		}
	}
	f.recorded = now
	return wrong
}

// keepsWhatEnded is asked after each change.
func keepsWhatEnded(w *explore.World) string {
	f := listFactsOf(w)
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.learn(w)
}

// begins notes that a job begins, and says what is wrong with that.
func (f *listFacts) begins(a *explore.Actor, job int, ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.learn(a.World())
	if f.recorded[job] {
		a.World().Violate("I7: %s begins job %d, and its result is recorded", a.Name, job)
	}
	for other, r := range f.running {
		if other != a && r.job == job && !other.Gone() && r.ctx.Err() == nil {
			a.World().Violate("I1: %s begins job %d, and %s runs it", a.Name, job, other.Name)
		}
	}
	f.running[a] = atWork{job, ctx}
}

func (f *listFacts) ends(a *explore.Actor) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.running, a)
}

// playedList are the jobs as an actor runs them.
func playedList(a *explore.Actor) []batch.Job {
	f, list := listFactsOf(a.World()), make([]batch.Job, playedJobs)
	for i := range list {
		list[i] = batch.Job{Name: strconv.Itoa(100 + i), Command: "work", Work: func(ctx context.Context, t batch.Attempt) error {
			if !a.Gate(fmt.Sprintf("begins job %d", t.Seq)) || ctx.Err() != nil {
				return context.Cause(ctx)
			}
			a.Note("begins job %d", t.Seq)
			f.begins(a, t.Seq, ctx)
			defer f.ends(a)
			return lasts(playedLength)(ctx, t)
		}}
	}
	return list
}

// worksThrough is a host that works through the list, as often as it takes.
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
	b, err := batch.New(src, playedList(a), batch.Options{Options: multilock.Options{TTL: locks.TTL}})
	if err != nil {
		return batch.Report{}, err
	}
	b.InOneChunk(func(n int64) int64 { return n - 1 - n/7 })
	return b.Run(a.Context())
}

// toldRight compares what a host is told with what is recorded.
func toldRight(a *explore.Actor, report batch.Report) {
	f := listFactsOf(a.World())
	f.mu.Lock()
	defer f.mu.Unlock()
	f.learn(a.World())
	if report.Done != playedJobs || len(f.recorded) != playedJobs {
		a.World().Violate("I7: %s is told that %d jobs are done, and %d are", a.Name, report.Done, len(f.recorded))
	}
}

// allIsDone says that nothing of the list is lost, nor a lock left where nobody crashed.
func allIsDone(w *explore.World) {
	f := listFactsOf(w)
	f.learn(w)
	living := slices.ContainsFunc(w.Actors(), func(a *explore.Actor) bool { return !a.Crashed })
	if living && len(f.recorded) != playedJobs {
		w.Violate("I3: all have ended, and %d jobs are recorded", len(f.recorded))
	}
}

// listOf is a scenario in which hosts work through one list.
func listOf(hosts ...func(*explore.Actor)) *explore.Scenario {
	sc := locks.Scenario(hosts...)
	for i := range sc.Actors {
		sc.Actors[i].Threads = true
	}
	sc.Facts, sc.Always, sc.AtEnd = newListFacts, keepsWhatEnded, allIsDone
	sc.Pause, sc.Nap = sc.Pause+730*time.Millisecond, sc.Nap-590*time.Millisecond
	return sc
}

var longExplore = flag.Bool("long-explore", false, "play more schedules, for up to an hour")

func proven(t *testing.T, r explore.Report) {
	t.Helper()
	t.Log(r)
	if r.Violation != "" {
		require.Fail(t, r.Violation, "replay with %s\n%s", r.Choices, r.Trace)
	}
}

func TestExploreList(t *testing.T) {
	t.Parallel()
	sc := listOf(worksThrough, worksThrough)
	sc.Mount.MinAge, sc.Mount.MaxAge = 3*time.Second, 6*time.Second
	r := sc.Replay(t, nil)
	t.Log(r.Trace, r.Violation)
	sc.Preemptions, sc.Faults = 5, 2
	differ := 0
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		c := explore.Choices{}
		for range 6 {
			c[random.IntN(600)] = 1 + random.IntN(9)
		}
		r, again := sc.Replay(t, c), sc.Replay(t, c)
		if r.Violation != "" {
			t.Log(seed, c, r.Violation)
		}
		r.Trace, again.Trace = tok.ReplaceAllString(r.Trace, "T"), tok.ReplaceAllString(again.Trace, "T")
		if r.Trace != again.Trace {
			os.WriteFile("/tmp/t1", []byte(r.Trace), 0o644)
			os.WriteFile("/tmp/t2", []byte(again.Trace), 0o644)
			t.Log(seed, c)
			differ++
		}
	}
	t.Log(differ)
}

func TestExploreListA(t *testing.T) {
	sc := listOf(worksThrough, worksThrough)
	sc.Mount.MinAge, sc.Mount.MaxAge = 3*time.Second, 6*time.Second
	sc.Preemptions, sc.Faults = 1, 0
	proven(t, sc.Exhaust(t, time.Minute))
	sc.Preemptions, sc.Faults = 0, 1
	proven(t, sc.Exhaust(t, 5*time.Minute))
}

var tok = regexp.MustCompile("[0-9a-f]{8}")
