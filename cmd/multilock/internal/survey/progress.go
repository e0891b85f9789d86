package survey

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/multilock/go/internal/estimate"
	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// Progress counts the jobs of a group's list. Each is in exactly one state.
type Progress struct {
	Jobs    int `json:"total"`
	Done    int `json:"done"`
	Failed  int `json:"failed"`
	Retry   int `json:"retry"`   // failed, may be retried
	Unknown int `json:"unknown"` // the result cannot be read
	Claimed int `json:"claimed"` // no result yet; a live host holds the lock of its chunk
	Pending int `json:"pending"` // no result, and no live host holds the lock

	// Rate is the number of jobs that ended per second, over the time in which a host held a chunk; 0 if none
	// has ended. Left estimates the remaining seconds at that rate, 0 if no live host works on the list.
	Rate float64 `json:"jobs_per_second,omitempty"`
	Left float64 `json:"remaining_seconds,omitempty"`
}

// Ended returns how many jobs will not run again.
func (p *Progress) Ended() int { return p.Done + p.Failed }

// Percent returns the percentage of ended jobs, rounded down: 100 means all.
func (p *Progress) Percent() int { return 100 * p.Ended() / max(p.Jobs, 1) }

// List computes the progress of a group's list from its results and held locks. It is safe for
// concurrent use.
type List struct {
	last    int   // number of the last job
	removed []int // numbers before it that were removed from the list
	mu      sync.Mutex
	counts  Progress
	work    estimate.Work
	active  []period                  // when hosts held chunks
	settled map[source.Range]int      // jobs with a result, or moved to another chunk
	held    map[source.Range]struct{} // chunks with a live holder
}

// OpenList reads the group's list. It returns nil if the group has none, or if the source keeps no
// lists; the methods of a nil List do nothing.
func OpenList(ctx context.Context, src multilock.Source) (*List, error) {
	manifests, ok := src.(source.ManifestStore)
	if !ok {
		return nil, nil
	}
	l := &List{settled: map[source.Range]int{}, held: map[source.Range]struct{}{}}
	err := joblist.Each(ctx, manifests, func(j joblist.Job) bool {
		for l.last++; l.last < j.Number; l.last++ {
			l.removed = append(l.removed, l.last)
			l.work.Skip()
		}
		l.work.Add(j.Command())
		l.counts.Jobs++
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("read the group's list of jobs: %w", err)
	}
	if l.counts.Jobs == 0 {
		return nil, nil
	}
	return l, nil
}

// Result adds a result. That of a chunk may come with or without its jobs.
func (l *List) Result(r multilock.Result) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	chunk, ok := joblist.ParseChunkName(r.Name)
	switch {
	case ok && r.Chunk == nil:
		l.counts.Unknown, l.settled[chunk] = l.counts.Unknown+l.jobsIn(chunk), l.jobsIn(chunk)
	case ok:
		c := r.Chunk
		l.counts.Done, l.counts.Failed = l.counts.Done+c.Done, l.counts.Failed+c.Failed
		l.counts.Retry += c.Recorded - c.Done - c.Failed
		l.settled[chunk] = c.Recorded
		for _, part := range c.Returned {
			l.settled[chunk] += l.jobsIn(part)
		}
		l.worked(chunk, r)
	}
}

// jobsIn counts the jobs of a chunk that are in the list.
func (l *List) jobsIn(chunk source.Range) int {
	to := min(chunk.To, l.last)
	first, _ := slices.BinarySearch(l.removed, chunk.From)
	behind, _ := slices.BinarySearch(l.removed, to+1)
	return max(to-chunk.From+1, 0) - max(behind-first, 0)
}

// worked adds the durations of a chunk's jobs. The summary has only their sum, so each job counts as the
// average.
func (l *List) worked(chunk source.Range, r multilock.Result) {
	c := r.Chunk
	each := time.Duration(c.Ran / float64(max(c.Recorded, 1)) * float64(time.Second))
	for i := range min(c.Done+c.Failed, chunk.To-chunk.From+1, l.last-chunk.From+1) {
		l.work.Ended(chunk.From-1+i, each)
	}
	if !r.Start.IsZero() && r.Duration > 0 {
		l.active = append(l.active, period{r.Start, r.Start.Add(r.Duration)})
	}
}

// Held adds a lock with a live holder, which has held it for the given time, 0 if unknown.
func (l *List) Held(name string, age time.Duration) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if chunk, ok := joblist.ParseChunkName(name); ok {
		l.held[chunk] = struct{}{}
		if now := time.Now(); age > 0 {
			l.active = append(l.active, period{now.Add(-age), now})
		}
	}
}

// Progress returns the counts, nil for a nil List.
func (l *List) Progress() *Progress {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.counts
	for chunk := range l.held {
		p.Claimed += max(l.jobsIn(chunk)-l.settled[chunk], 0)
	}
	p.Pending = max(p.Jobs-p.Done-p.Failed-p.Retry-p.Unknown-p.Claimed, 0)
	if took := covered(l.active); took > 0 {
		p.Rate = float64(p.Ended()) / took.Seconds()
		if len(l.held) > 0 {
			p.Left = l.work.Estimate().Remaining(took).Seconds()
		}
	}
	return &p
}

// period is a time in which a host held a chunk, by the host's clock.
type period struct{ from, to time.Time }

// covered returns how long at least one of the periods lasted.
func covered(periods []period) (sum time.Duration) {
	slices.SortFunc(periods, func(a, b period) int { return a.from.Compare(b.from) })
	var end time.Time
	for _, p := range periods {
		if p.from.Before(end) {
			p.from = end
		}
		if p.to.After(p.from) {
			sum, end = sum+p.to.Sub(p.from), p.to
		}
	}
	return sum
}
