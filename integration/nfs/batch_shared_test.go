package nfs_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

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
