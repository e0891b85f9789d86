package nfs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/lockgroup/batch"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

// Hosts seldom meet at a job: each further host has to try no more than every second
// job in vain. If all went by the list's order, they would meet at nearly every one.
func TestCostOfSharedBatch(t *testing.T) {
	needLab(t)
	jobs := jobsAtLength(100, 600)
	for many := 1; many <= len(hosts()); many++ {
		p := newPlace(t)
		var tried atomic.Int64
		var crew sync.WaitGroup
		spent := requests{}
		before := map[string]requests{}
		for _, h := range hosts()[:many] {
			src := &countedSource{p.source(t, h), &tried}
			before[h.name] = h.requests(t)
			crew.Go(func() {
				b, err := batch.New(src, silentJobs(jobs), batch.Options{Workers: 2})
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
		wasted := int(tried.Load()) - jobs
		t.Logf("%d hosts, %d jobs: %.1f requests for each, %d attempts found the job done or held: %s", many, jobs, float64(spent.total())/float64(jobs), wasted, spent)
		require.LessOrEqual(t, wasted, (many-1)*jobs/2)
	}
}

func silentJobs(n int) []batch.Job {
	var jobs []batch.Job
	for i := range n {
		nothing := func(context.Context, batch.Attempt) error { return nil }
		jobs = append(jobs, batch.Job{Name: fmt.Sprintf("job%04d", i), Work: nothing})
	}
	return jobs
}

// countedSource counts the attempts at locks.
type countedSource struct {
	*fslock.Source
	tried *atomic.Int64
}

// Contend implements multilock.Source.
func (s *countedSource) Contend(ctx context.Context, name string, claim source.Claim, patience multilock.Patience) (source.Contender, error) {
	s.tried.Add(1)
	return s.Source.Contend(ctx, name, claim, patience)
}

// The curve: one list, by one to three hosts. All hosts and the server share the
// same emulated processors, so jobs of nothing show what those can do; with jobs that take
// time, more hosts do more. What is asserted is that each job ran once.
func TestBatchCurve(t *testing.T) {
	needCommand(t)
	if testing.Short() {
		t.Skip("takes minutes; what a job costs in requests, TestCostOfSharedBatch shows")
	}
	for _, c := range []struct {
		work        string
		width, jobs int
	}{{"true", 1, 30}, {"true", 4, 60}, {"sleep 5", 1, 12}, {"sleep 5", 4, 36}} {
		for many := 1; many <= len(hosts()); many++ {
			point := curvePoint(t, c.work, c.width, c.jobs, hosts()[:many])
			t.Logf("%-8s -j%d, %d hosts: %s", c.work, c.width, many, point)
		}
	}
}

// curvePoint works through one list, and tells how fast that was. What the processes
// cost that run the jobs shows in a second run, which finds that all is done.
func curvePoint(t *testing.T, work string, width, jobs int, crew []host) string {
	t.Helper()
	r := newTrial(t, 0, width)
	list := r.file("list", strings.Repeat(work+"\n", jobs))
	start, idle := time.Now(), idleTime(t)
	spent := r.batchOn(crew, list)
	took, idled := time.Since(start), idleTime(t)-idle
	require.Equal(t, jobs, r.ranOn(crew))
	overhead := r.batchOn(crew, list)
	require.Zero(t, r.ranOn(crew))
	return fmt.Sprintf("%5.2f jobs/s, %3.0f requests for each and %2.0f for each process, the processors idle for %2.0f%%",
		float64(jobs)/took.Seconds(), float64(spent-overhead)/float64(jobs), float64(overhead)/float64(len(crew)),
		100*idled.Seconds()/took.Seconds()/float64(runtime.NumCPU()))
}

// batchOn runs the command with a list on several hosts, and tells how many requests
// that has cost.
func (r *trial) batchOn(crew []host, list string) (spent int) {
	r.t.Helper()
	before := map[string]requests{}
	var hands sync.WaitGroup
	for _, h := range crew {
		before[h.name] = h.requests(r.t)
		hands.Go(func() {
			r.succeeds(r.shell(h, `"$0" -d "$1" batch -q --json -j "$2" "$3" >"$4"`, strconv.Itoa(r.width), list, r.report(h)))
		})
	}
	hands.Wait()
	for _, h := range crew {
		spent += h.requests(r.t).since(before[h.name]).total()
	}
	return spent
}

func (r *trial) report(h host) string {
	return filepath.Join(filepath.Dir(r.witness.path), h.name+".json")
}

// ranOn is how many jobs the last batch has run on those hosts.
func (r *trial) ranOn(crew []host) (ran int) {
	r.t.Helper()
	for _, h := range crew {
		text, err := os.ReadFile(r.report(h))
		require.NoError(r.t, err)
		var report struct{ Ran int }
		require.NoError(r.t, json.Unmarshal(text, &report))
		ran += report.Ran
	}
	return ran
}

// idleTime is how long the emulated processors together have had nothing to do (proc(5), the
// first line of /proc/stat, in hundredths of a second).
func idleTime(t *testing.T) time.Duration {
	t.Helper()
	text, err := os.ReadFile("/proc/stat")
	require.NoError(t, err)
	var user, nice, system, idle int64
	_, err = fmt.Sscanf(string(text), "cpu %d %d %d %d", &user, &nice, &system, &idle)
	require.NoError(t, err)
	return time.Duration(idle) * 10 * time.Millisecond
}
