package report

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/multilock/go/multilock"
)

// Timing has the durations of runs and the end times of jobs. It keeps nothing else of a job that the
// timeline does not list. It is safe for concurrent use.
type Timing struct {
	mu      sync.Mutex
	took    [fineBuckets]int
	slowest []slowRun // at most maxSlowest, the slowest first
	ends    []int64   // Unix milliseconds
}

type slowRun struct {
	name, host string
	took       time.Duration
	end        time.Time
}

const (
	// Eight buckets for each doubling, from a millisecond to 34 years: a bucket is 9 % wide.
	fineBuckets, perDoubling = 320, 8
	maxSlowest               = 10
)

// Add adds a job that has succeeded.
func (t *Timing) Add(r multilock.Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	end := r.Start.Add(r.Duration)
	t.run(slowRun{r.Name, r.By.Host, r.Duration, end})
	t.ends = append(t.ends, end.UnixMilli())
}

func (t *Timing) run(r slowRun) {
	t.took[bucketOf(r.took)]++
	if len(t.slowest) == maxSlowest && r.took <= t.slowest[maxSlowest-1].took {
		return
	}
	i, _ := slices.BinarySearchFunc(t.slowest, r, func(a, b slowRun) int { return cmp.Or(cmp.Compare(b.took, a.took), natural(a.name, b.name)) })
	t.slowest = slices.Insert(t.slowest, i, r)
	t.slowest = t.slowest[:min(len(t.slowest), maxSlowest)]
}

func bucketOf(took time.Duration) int {
	doublings := math.Log2(max(float64(took)/float64(time.Millisecond), 1))
	return min(int(doublings*perDoubling), fineBuckets-1)
}

// bound returns the lower bound of a bucket in seconds.
func bound(bucket int) float64 {
	if bucket == 0 {
		return 0
	}
	return math.Exp2(float64(bucket)/perDoubling) / 1000
}

// addListed adds the runs of a job that the timeline lists. A run of a chunk stands for several jobs.
func (t *Timing) addListed(job *Job) {
	for i := range job.Runs {
		r := &job.Runs[i]
		if job.chunk || r.State != Done && r.State != Failed || r.Start.IsZero() || r.End.Before(r.Start) {
			continue
		}
		t.run(slowRun{job.Name, r.Host, r.End.Sub(r.Start), r.End})
	}
	n := len(job.Runs)
	if n == 0 || job.chunk || job.State != Done && job.State != Failed {
		return
	}
	if last := &job.Runs[n-1]; !last.End.IsZero() && last.Tick.IsZero() { // a recurring job does not end
		t.ends = append(t.ends, last.End.UnixMilli())
	}
}

// runs returns the number of runs with a known duration.
func (t *Timing) runs() (n int) {
	for _, count := range t.took {
		n += count
	}
	return n
}

// quantile returns the upper bound of the bucket in which a share of the runs ends, in seconds.
func (t *Timing) quantile(share float64) float64 {
	left := int(math.Ceil(share * float64(t.runs())))
	for i, count := range t.took {
		if left -= count; left <= 0 {
			return bound(i + 1)
		}
	}
	return 0
}
