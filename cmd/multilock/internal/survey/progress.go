package survey

import (
	"context"
	"fmt"
	"sync"

	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// Progress counts the jobs of a group's list. Each is in exactly one state.
type Progress struct {
	Jobs    int `json:"jobs"`
	Done    int `json:"done"`
	Failed  int `json:"failed"`
	Retry   int `json:"retry"`   // failed, may be retried
	Unknown int `json:"unknown"` // the result cannot be read
	Claimed int `json:"claimed"` // no result yet; a live host holds the lock of its chunk
	Pending int `json:"pending"` // no result, and no live host holds the lock
}

// Ended is how many jobs will not run again.
func (p *Progress) Ended() int { return p.Done + p.Failed }

// Percent is the share of ended jobs, rounded down: 100 means all.
func (p *Progress) Percent() int { return 100 * p.Ended() / max(p.Jobs, 1) }

// List computes the progress of a group's list from its results and held locks. It is safe for
// concurrent use.
type List struct {
	mu      sync.Mutex
	counts  Progress
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
		l.counts.Jobs = j.Number
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

// Result adds a result; a chunk's counts with or without its jobs.
func (l *List) Result(r multilock.Result) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	chunk, ok := joblist.ParseChunkName(r.Name)
	switch {
	case ok && r.Chunk == nil:
		l.counts.Unknown, l.settled[chunk] = l.counts.Unknown+chunk.To-chunk.From+1, chunk.To-chunk.From+1
	case ok:
		c := r.Chunk
		l.counts.Done, l.counts.Failed = l.counts.Done+c.Done, l.counts.Failed+c.Failed
		l.counts.Retry += c.Recorded - c.Done - c.Failed
		l.settled[chunk] = c.Recorded + c.GivenBack()
	}
}

// Held adds a lock with a live holder.
func (l *List) Held(name string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if chunk, ok := joblist.ParseChunkName(name); ok {
		l.held[chunk] = struct{}{}
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
		p.Claimed += max(chunk.To-chunk.From+1-l.settled[chunk], 0)
	}
	p.Pending = max(p.Jobs-p.Done-p.Failed-p.Retry-p.Unknown-p.Claimed, 0)
	return &p
}
