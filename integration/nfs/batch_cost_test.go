package nfs_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/lockgroup/batch"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// jobPrices are the costs of the steps of batches, run-once jobs and barriers.
func jobPrices() []price {
	return []price{
		{what: "a job that runs once: lock, look, commit, release", most: [3]int{24, 24, 23}, call: costOfJob},
		{what: "a job that turns out to be done", most: [3]int{22, 22, 21}, call: costOfDoneJob},
		{what: "a job that somebody else holds", most: [3]int{9, 9, 9}, call: costOfHeldJob},
		{what: "news of a batch, told", most: [3]int{6, 6, 5}, call: costOfTelling},
		{what: "news of a batch, when there are none", most: [3]int{5, 5, 5}, call: costOfNoNews},
		{what: "whether any of 2,000 results is new", most: [3]int{1, 1, 1}, call: costOfRevision},
	}
}

func costOfJob(t *testing.T, b bench) func() {
	n := 0
	return func() {
		n++
		runJob(t, b.src, fmt.Sprintf("job%d", n))
	}
}

// runJob does what a batch does for a job that has not run yet.
func runJob(t *testing.T, src *fslock.Source, name string) {
	ctx := context.Background()
	lock, err := multilock.TryOnce(ctx, src, name, multilock.Options{TTL: long})
	require.NoError(t, err)
	_, err = lock.Outcome(ctx)
	require.ErrorIs(t, err, multilock.ErrNoResult)
	require.NoError(t, lock.Commit(ctx, multilock.Result{By: src.Self(), Attempt: 1, Final: true}))
	require.NoError(t, lock.Release(ctx))
}

func costOfDoneJob(t *testing.T, b bench) func() {
	other, n := b.source(t, b.other), 0
	return func() {
		n++
		name := fmt.Sprintf("job%d", n)
		runJob(t, other, name)
		lock, err := multilock.TryOnce(context.Background(), b.src, name, multilock.Options{TTL: long})
		require.NoError(t, err)
		_, err = lock.Outcome(context.Background())
		require.NoError(t, err)
		require.NoError(t, lock.Release(context.Background()))
	}
}

func costOfHeldJob(t *testing.T, b bench) func() {
	try(t, b.source(t, b.other), "job", multilock.Options{TTL: long})
	return func() {
		_, err := multilock.TryOnce(context.Background(), b.src, "job", multilock.Options{TTL: long})
		require.ErrorIs(t, err, multilock.ErrHeld)
	}
}

func costOfTelling(t *testing.T, b bench) func() {
	return func() {
		require.NoError(t, b.src.Append(context.Background(), source.Event{Time: time.Now(), What: source.EventCommitted, Name: "job"}))
	}
}

// costOfNoNews follows a history of three hosts.
func costOfNoNews(t *testing.T, b bench) func() {
	for _, h := range hosts() {
		require.NoError(t, b.source(t, h).Append(context.Background(), source.Event{Time: time.Now(), What: source.EventCommitted, Name: "job"}))
	}
	follower := b.src.Follow(time.Time{})
	t.Cleanup(func() { _ = follower.Close() })
	for heard := 0; heard < len(hosts()); {
		events, err := follower.Next(context.Background())
		require.NoError(t, err)
		heard += len(events)
	}
	return func() {
		events, err := follower.Next(context.Background())
		require.NoError(t, err)
		require.Empty(t, events)
	}
}

func costOfRevision(t *testing.T, b bench) func() {
	b.fillResults(t, 2000)
	return func() {
		revision, err := b.src.Revision(context.Background())
		require.NoError(t, err)
		require.NotEmpty(t, revision)
	}
}

// fillResults creates n results on the server's own disk: it commits one and copies it.
func (p place) fillResults(t *testing.T, n int) {
	t.Helper()
	src, err := fslock.Open(fslock.Options{Base: p.stored(), Self: hosts()[0].identity(t)})
	require.NoError(t, err)
	t.Cleanup(func() { _ = src.Close() })
	runJob(t, src, "job0000")
	content, err := os.ReadFile(p.result("job0000"))
	require.NoError(t, err)
	for i := 1; i < n; i++ {
		require.NoError(t, os.WriteFile(p.result(fmt.Sprintf("job%04d", i)), content, 0o666))
	}
}

// result is the path of a job's result on the server's disk.
func (p place) result(name string) string { return filepath.Join(p.results(), name) }

// results is the directory of the results on the server's disk.
func (p place) results() string {
	return p.stored(".multilock", "groups", fslock.DefaultGroup, "done")
}

// Breaks down the requests of a job by call, alone and together with another host. That host
// changes the shared directories before each call, so the client must revalidate what it has cached
// of them. The check whether the job is already done uses a request that no client answers from its
// cache, and so does the commit.
// Rule: calls, commit, outcome
func TestCostOfEachCallOfAJob(t *testing.T) {
	eachVersion(t, func(t *testing.T, h host, others []host) {
		p := newPlace(t)
		company, n := p.source(t, others[0]), 0
		for name, before := range map[string]func(){
			"alone":    func() {},
			"together": func() { n++; runJob(t, company, fmt.Sprintf("other%d", n)) },
		} {
			if testing.Short() && name != "alone" {
				continue // the other host runs a job before each call
			}
			l := &ledger{t: t, h: h}
			src := p.sourceThrough(t, h, faultfs.New(h, func(op faultfs.Op) error {
				if op.Phase == faultfs.Before {
					before()
				}
				return l.note(op)
			}))
			l.requireAsked(src, name)
			t.Logf("v%s, %s: %d\n%s", h.version, name, l.total(), l)
		}
	})
}

// requireAsked runs jobs and checks what those after the first one asked the server. A busy server
// makes a client repeat a request (DELAY), so one job with the exact counts is enough.
func (l *ledger) requireAsked(src *fslock.Source, prefix string) {
	l.t.Helper()
	runJob(l.t, src, prefix)
	mkdir := map[string]string{"4.2": "CREATE", "4.1": "CREATE", "3": "MKDIR"}[l.h.version]
	isDone, commit := 0, 0
	for n := 0; n < tries && isDone*commit != 1; n++ {
		l.clear()
		name := fmt.Sprint(prefix, n)
		runJob(l.t, src, name)
		isDone = l.during("mkdir .multilock/groups/" + fslock.DefaultGroup + "/done/" + name)[mkdir]
		commit = l.during("rename " + fslock.DefaultGroup + "/" + name + "/" + name)["RENAME"]
	}
	require.Equal(l.t, 1, isDone, "is it done?")
	require.Equal(l.t, 1, commit, "it is done")
}

func (l *ledger) total() (sum int) {
	for _, spent := range l.spent {
		sum += spent.total()
	}
	return sum
}

// A list costs the server a few requests for each job, whether or not the jobs take time, and hosts
// seldom compete for a chunk.
// Rule: chunks, next-chunk
func TestCostOfSharedBatch(t *testing.T) {
	needLab(t)
	for _, c := range []struct {
		jobs   int
		length time.Duration
		most   int // requests for each job
	}{
		{jobsAtLength(300, 2000), 0, jobsAtLength(9, 6)}, // the chunks of a short list are short
		// The short list mostly consists of its end, and of waiting. On an overloaded machine,
		// where a list of 38 s took 47 to 170 s, a job cost 22 requests with 2 hosts and 33 with 3.
		// The model counts 19 and 21 with calls of 5 to 500 ms. The rest are requests that a client
		// repeats as time passes or other hosts make changes.
		{jobsAtLength(60, 600), 5 * time.Second, jobsAtLength(40, 10)},
	} {
		for many := 1; many <= len(hosts()); many++ {
			if many == 1 && testing.Short() {
				continue
			}
			costOfSharedBatch(t, many, c.jobs, c.length, float64(c.most))
		}
	}
}

func costOfSharedBatch(t *testing.T, many, jobs int, length time.Duration, most float64) {
	p := newPlace(t)
	var tried atomic.Int64
	var crew sync.WaitGroup
	spent := requests{}
	before := map[string]requests{}
	start := time.Now()
	for _, h := range hosts()[:many] {
		src := &countedSource{p.source(t, h), &tried}
		before[h.name] = h.requests(t)
		crew.Go(func() {
			b, err := batch.New(src, silentJobs(jobs, length), batch.Options{Workers: 4})
			if err == nil {
				_, err = b.Run(context.Background())
			}
			if err != nil {
				t.Errorf("%s: %v", h.name, err)
			}
		})
	}
	crew.Wait()
	for _, h := range hosts()[:many] {
		for op, n := range h.requests(t).since(before[h.name]) {
			spent[op] += n
		}
	}
	each := float64(spent.total()) / float64(jobs)
	t.Logf("%d hosts, %d jobs of %s: %.1f requests for each, %d claims, in %s: %s", many, jobs, length, each, tried.Load(), time.Since(start).Round(time.Second/10), spent)
	require.LessOrEqual(t, each, most)
	require.LessOrEqual(t, tried.Load(), int64(jobs))
}

func silentJobs(n int, length time.Duration) []batch.Job {
	var jobs []batch.Job
	for i := range n {
		sleeps := func(ctx context.Context, _ batch.Attempt) error { return bounded.Sleep(ctx, length) }
		jobs = append(jobs, batch.Job{Name: fmt.Sprintf("job%04d", i), Work: sleeps})
	}
	return jobs
}

// countedSource counts the attempts to acquire locks.
type countedSource struct {
	*fslock.Source
	tried *atomic.Int64
}

// Contend implements multilock.Source.
func (s *countedSource) Contend(ctx context.Context, name string, claim source.Claim, policy multilock.StalePolicy) (source.Contender, error) {
	s.tried.Add(1)
	return s.Source.Contend(ctx, name, claim, policy)
}
