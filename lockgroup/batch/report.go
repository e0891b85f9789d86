package batch

import (
	"maps"
	"slices"

	"github.com/multilock/go/multilock"
)

// Progress is how far a batch has come, over all hosts.
type Progress struct {
	// Total is the length of the list; Done and Failed count the final results.
	Total, Done, Failed int
	// Before is how many of those there were when Run began to take jobs.
	Before int
	// Running is how many jobs this process has in its hands, Elsewhere how many of
	// those that it met are in others'.
	Running, Elsewhere int
	// TakenOver is how many locks of the list's jobs were broken since Run began,
	// because their holders had died.
	TakenOver int
	// Ran counts the attempts that this process has made and recorded.
	Ran int
}

// Report is how things stood when Run returned.
type Report struct {
	Progress
	// Failures are the results of jobs that have failed for good, in the list's
	// order; not more than a thousand of them.
	Failures []multilock.Result
	// Incomplete are the results of jobs that are done, but whose output is not kept as a
	// whole (Result.Output), in the same way.
	Incomplete []multilock.Result
	// Trouble is the first error with the history, nil if there was none. Without
	// news of what others have done a batch is as safe, and slower.
	Trouble error
}

// Progress may be asked at any time, also while Run runs.
func (b *Batch) Progress() Progress {
	c := b.queue.count()
	p := Progress{Total: len(b.jobs), Done: c.done, Failed: c.failed, Running: c.taken, Elsewhere: c.later}
	p.TakenOver, _ = b.feed.sum()
	b.mu.Lock()
	defer b.mu.Unlock()
	p.Ran, p.Before = b.ran, b.before
	return p
}

func (b *Batch) report() Report {
	r := Report{Progress: b.Progress()}
	_, r.Trouble = b.feed.sum()
	b.mu.Lock()
	defer b.mu.Unlock()
	r.Failures, r.Incomplete = inOrder(b.failures), inOrder(b.incomplete)
	return r
}

func inOrder(kept map[int]multilock.Result) (results []multilock.Result) {
	for _, i := range slices.Sorted(maps.Keys(kept)) {
		results = append(results, kept[i])
	}
	return results
}
